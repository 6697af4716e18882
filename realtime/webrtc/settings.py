"""What the operator may set about WebRTC: the deployment's `server.webrtc`."""

import ipaddress
import re
from typing import Literal

import msgspec

_URL = re.compile(
    r"(?P<scheme>stun|turn|turns):(?P<host>[A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\])(?::(?P<port>[0-9]{1,5}))?"
    r"(?:\?transport=(?P<transport>udp|tcp))?"
)
_DEFAULT_PORTS = {"stun": 3478, "turn": 3478, "turns": 5349}
_DEFAULT_TRANSPORTS: dict[str, Literal["udp", "tcp"]] = {"stun": "udp", "turn": "udp", "turns": "tcp"}
FIRST_PORT, LAST_PORT = 1024, 65_535


class IceUrl(msgspec.Struct, frozen=True, kw_only=True):
    """A `stun:`, `turn:` or `turns:` URL in its parts (RFC 7064, RFC 7065)."""

    scheme: str
    host: str
    port: int
    transport: Literal["udp", "tcp"]


class IceServer(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A STUN or TURN server that this server asks for a candidate. `url`: `stun:host:port` or `turn:host:port?transport=udp`."""

    url: str
    username: str = ""
    credential: str = ""

    def __post_init__(self) -> None:
        _require(
            _parsed(self.url) is not None, "ice_servers", "stun:host[:port] or turn:host[:port][?transport=udp|tcp]", self.url
        )

    @property
    def address(self) -> IceUrl:
        found = _parsed(self.url)
        assert found is not None, "checked when this was made"
        return found


class TurnSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A TURN server that shares a secret with this one: ANTIPHON_TURN_SECRET in the environment, never in a file."""

    urls: tuple[str, ...] = ()
    """Of one server, the best first: turn:turn.example.org, turns:turn.example.org. This server itself uses the first."""
    ttl_s: int = 3600
    """How long a client's credentials are good for."""

    def __post_init__(self) -> None:
        for url in self.urls:
            parsed = _parsed(url)
            right = parsed is not None and parsed.scheme != "stun"
            _require(right, "turn.urls", "turn:host[:port][?transport=udp|tcp] or turns:host[:port]", url)
        _require(self.ttl_s > 0, "turn.ttl_s", "more than 0", self.ttl_s)


class WebRtcSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    announced_addresses: tuple[str, ...] = ()
    """Addresses under which clients reach this machine, named in place of its own: behind a NAT, in a container."""
    udp_ports: tuple[int, int] | None = None
    """First and last UDP port for media, to be opened in a firewall; None leaves the choice to the system."""
    ice_servers: tuple[IceServer, ...] = ()
    """None by default: no third party is asked for anything. At most one STUN and one TURN server."""
    turn: TurnSettings = msgspec.field(default_factory=TurnSettings)
    """For clients that UDP does not reach, and for a server that it does not reach."""
    connect_timeout_s: float = 10.0
    """A call whose media does not flow after so long gives its seat back."""

    def __post_init__(self) -> None:
        for address in self.announced_addresses:
            _require(_is_address(address), "announced_addresses", "IP addresses such as 203.0.113.7", address)
        if self.udp_ports is not None:
            first, last = self.udp_ports
            expected = f"the first and the last port, from {FIRST_PORT} to {LAST_PORT}"
            _require(FIRST_PORT <= first <= last <= LAST_PORT, "udp_ports", expected, list(self.udp_ports))
        for schemes in ({"stun"}, {"turn", "turns"}):
            urls = [server.url for server in self.ice_servers if server.address.scheme in schemes]
            _require(len(urls) <= 1, "ice_servers", f"at most one {min(schemes)} server", urls)
        relays = [server.url for server in self.ice_servers if server.address.scheme != "stun"]
        _require(not (relays and self.turn.urls), "ice_servers", "no TURN server beside that of server.webrtc.turn", relays)
        _require(self.connect_timeout_s > 0, "connect_timeout_s", "more than 0", self.connect_timeout_s)


def _parsed(url: str) -> IceUrl | None:
    match = _URL.fullmatch(url)
    if match is None:
        return None
    scheme = match["scheme"]
    port = int(match["port"] or _DEFAULT_PORTS[scheme])
    transport = "tcp" if match["transport"] == "tcp" else "udp" if match["transport"] else _DEFAULT_TRANSPORTS[scheme]
    if not 0 < port <= LAST_PORT or (scheme, match["transport"]) in {("stun", "tcp"), ("stun", "udp"), ("turns", "udp")}:
        return None
    return IceUrl(scheme=scheme, host=match["host"].strip("[]"), port=port, transport=transport)


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return "%" not in text


def _require(holds: bool, field: str, expected: str, got: object) -> None:
    if not holds:
        raise ValueError(f"server.webrtc.{field}: expected {expected}, got {got!r}")
