"""What an operator may write under `server.webrtc`, and how a mistake is named."""

import msgspec
import pytest

from realtime.deployment import load, render
from realtime.webrtc.settings import IceUrl, WebRtcSettings


def settings(**values: object) -> WebRtcSettings:
    return msgspec.convert(values, WebRtcSettings)


def test_nobody_is_asked_for_anything_by_default() -> None:
    assert settings().ice_servers == ()


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"announced_addresses": ["example.org"]}, "announced_addresses: expected IP addresses such as .*, got 'example.org'"),
        ({"announced_addresses": ["fe80::1%eth0"]}, "announced_addresses: expected"),
        ({"udp_ports": [50_000, 40_000]}, r"udp_ports: expected .* from 1024 to 65535, got \[50000, 40000\]"),
        ({"udp_ports": [80, 90]}, "udp_ports: expected"),
        ({"udp_ports": [65_000, 65_536]}, "udp_ports: expected"),
        ({"connect_timeout_s": 0}, "connect_timeout_s: expected more than 0, got 0"),
        ({"ice_servers": [{"url": "http://example.org"}]}, r"ice_servers: expected stun:host\[:port\] or turn:.*, got 'http"),
        ({"ice_servers": [{"url": "stun:"}]}, "ice_servers: expected"),
        ({"ice_servers": [{"url": "stun:example.org:0"}]}, "ice_servers: expected"),
        ({"ice_servers": [{"url": "stun:example.org?transport=udp"}]}, "ice_servers: expected"),
        ({"ice_servers": [{"url": "stun:a"}, {"url": "stun:b"}]}, "ice_servers: expected at most one stun server"),
        ({"ice_servers": [{"url": "turn:a"}, {"url": "turns:b"}]}, "ice_servers: expected at most one turn server"),
        ({"ice_servers": [{"url": "turn:a"}], "turn": {"urls": ["turn:b"]}}, "ice_servers: expected no TURN server beside"),
        ({"turn": {"urls": ["stun:a"]}}, "turn.urls: expected turn:host"),
        ({"turn": {"urls": ["turn:a"], "ttl_s": 0}}, "turn.ttl_s: expected more than 0, got 0"),
    ],
)
def test_a_mistake_is_named(values: dict[str, object], says: str) -> None:
    with pytest.raises(msgspec.ValidationError, match=f"server.webrtc.{says}"):
        settings(**values)


@pytest.mark.parametrize(
    ("url", "parts"),
    [
        ("stun:example.org", IceUrl(scheme="stun", host="example.org", port=3478, transport="udp")),
        ("turn:192.0.2.1:80?transport=tcp", IceUrl(scheme="turn", host="192.0.2.1", port=80, transport="tcp")),
        ("turn:example.org", IceUrl(scheme="turn", host="example.org", port=3478, transport="udp")),
        ("turn:[2001:db8::1]:3479", IceUrl(scheme="turn", host="2001:db8::1", port=3479, transport="udp")),
        ("turns:example.org", IceUrl(scheme="turns", host="example.org", port=5349, transport="tcp")),
    ],
)
def test_a_url_has_its_defaults(url: str, parts: IceUrl) -> None:
    assert settings(ice_servers=[{"url": url}]).ice_servers[0].address == parts


def test_passwords_are_not_printed() -> None:
    servers = [{"url": "turn:example.org", "username": "me", "credential": "hush-hush"}, {"url": "stun:example.org"}]
    deployment = load()
    server = msgspec.structs.replace(deployment.server, webrtc=settings(ice_servers=servers))
    printed = render(msgspec.structs.replace(deployment, server=server))
    assert "hush-hush" not in printed
    assert "credential: (hidden)" in printed
