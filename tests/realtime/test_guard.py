"""No web page drives a server on loopback, and no stranger one that is open to others."""

import asyncio
import logging
from collections.abc import Mapping

import aiohttp
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakes.edge import Edge, ServeEdge
from realtime.exposure import ExposureRefused, check_exposure
from realtime.origins import is_loopback
from realtime.settings import ServerSettings

FRIEND = "https://friend.example"


async def status(edge: Edge, headers: Mapping[str, str], path: str = "/healthz", method: str = "GET") -> int:
    async with edge.http.request(method, edge.url + path, headers=headers) as answer:
        if answer.status >= 400:
            assert set((await answer.json())["error"]) == {"message", "type", "code", "param"}
        return answer.status


async def handshake_status(edge: Edge, headers: Mapping[str, str], protocols: tuple[str, ...] = ()) -> int:
    try:
        async with edge.socket(headers=headers, protocols=protocols) as client:
            await client.until("session.created")
            return 101
    except aiohttp.WSServerHandshakeError as refused:
        return refused.status


OURS = ("localhost", "LOCALHOST:8080", "127.0.0.1", "127.1.2.3:1", "[::1]:8080", "a.localhost", "localhost.")
FOREIGN = ("evil.example", "127.0.0.1.evil.example", "localhost.evil.example:8080", "10.0.0.1", "[::2]", "[", "@")
DISGUISED = ("evil.com@127.0.0.1", "127.0.0.1/evil.com", "127.0.0.1#x", "127.0.0.1?x", "localhost\\\\x")


@pytest.mark.parametrize("host", OURS)
async def test_names_of_this_machine_are_answered(edge: Edge, host: str) -> None:
    assert await status(edge, {"Host": host}) == 200


@pytest.mark.parametrize("host", FOREIGN + DISGUISED)
async def test_a_rebound_name_is_not(edge: Edge, host: str) -> None:
    assert await status(edge, {"Host": host}) == 403
    assert await handshake_status(edge, {"Host": host}) == 403


@pytest.mark.parametrize("hosts", [(), ("localhost", "localhost"), ("localhost", "evil.example"), ("evil.example", "localhost")])
async def test_exactly_one_host_is_named(edge: Edge, hosts: tuple[str, ...]) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", int(edge.url.rsplit(":", 1)[1]))
    writer.write("".join(["GET /healthz HTTP/1.0\r\n", *(f"Host: {host}\r\n" for host in hosts), "\r\n"]).encode())
    assert (await reader.readline()).split()[1] == b"400"
    writer.close()


async def test_the_operator_may_allow_a_name(serve_edge: ServeEdge) -> None:
    edge = await serve_edge(settings=ServerSettings(allowed_hosts=("voice.example",)))
    assert await status(edge, {"Host": "voice.example:443"}) == 200
    assert await status(edge, {"Host": "other.example"}) == 403


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "http://localhost:1", "file://", "", "http://127.0.0.1", "http://["]
)
async def test_pages_of_others_reach_nothing(edge: Edge, origin: str) -> None:
    headers = {"Origin": origin}
    assert await status(edge, headers) == 403
    assert await status(edge, headers, "/v1/audio/speech", "POST") == 403
    assert await handshake_status(edge, headers) == 403
    assert not edge.graph.requests


@pytest.mark.parametrize(("site", "expected"), [("cross-site", 403), ("same-site", 403), ("same-origin", 200), ("none", 200)])
async def test_a_request_without_an_origin_says_where_it_comes_from(edge: Edge, site: str, expected: int) -> None:
    assert await status(edge, {"Sec-Fetch-Site": site}) == expected


LINK = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}


async def test_a_link_on_another_page_leads_to_ours(edge: Edge) -> None:
    assert await status(edge, LINK) == 200
    assert await status(edge, LINK | {"Sec-Fetch-Dest": "iframe"}) == 403
    assert await status(edge, LINK | {"Sec-Fetch-Mode": "no-cors"}) == 403
    assert await status(edge, LINK, "/v1/models") == 403
    assert await status(edge, LINK, method="POST") == 403


async def test_our_own_pages_may_call(edge: Edge) -> None:
    assert await status(edge, {"Origin": edge.url}) == 200
    assert await handshake_status(edge, {"Origin": edge.url}) == 101


async def test_a_friends_page_may_call_and_read(serve_edge: ServeEdge) -> None:
    edge = await serve_edge(settings=ServerSettings(allowed_origins=(FRIEND,)))
    asks = {"Origin": FRIEND, "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization"}
    async with edge.http.options(f"{edge.url}/v1/audio/speech", headers=asks) as preflight:
        assert preflight.status == 204
        assert preflight.headers["Access-Control-Allow-Origin"] == FRIEND
        assert "authorization" in preflight.headers["Access-Control-Allow-Headers"]
        assert "POST" in preflight.headers["Access-Control-Allow-Methods"]
    async with edge.http.get(f"{edge.url}/nothing", headers={"Origin": FRIEND}) as answer:
        assert (answer.status, answer.headers["Access-Control-Allow-Origin"]) == (404, FRIEND)
    assert await handshake_status(edge, {"Origin": FRIEND}) == 101
    async with edge.http.options(edge.url + "/v1/models", headers=asks | {"Origin": "https://evil.example"}) as preflight:
        assert preflight.status == 403
        assert "Access-Control-Allow-Origin" not in preflight.headers


async def test_a_key_is_asked_for_under_v1_only(serve_edge: ServeEdge, caplog: pytest.LogCaptureFixture) -> None:
    edge = await serve_edge(api_key="hush-hush")
    assert await status(edge, {}) == 200
    assert await status(edge, {}, "/v1/models") == 401
    assert await status(edge, {"Authorization": "Bearer wrong"}, "/v1/models") == 401
    assert await status(edge, {"Authorization": "Basic hush-hush"}, "/v1/models") == 401
    assert await status(edge, {"Authorization": "Bearer hush-hush"}, "/v1/models") == 200
    assert await handshake_status(edge, {}) == 401
    assert await handshake_status(edge, {"Authorization": "Bearer hush-hush"}) == 101
    assert await handshake_status(edge, {}, ("realtime", "openai-insecure-api-key.hush-hush")) == 101
    assert await handshake_status(edge, {}, ("realtime", "openai-insecure-api-key.wrong")) == 401
    assert await handshake_status(edge, {}, ("openai-insecure-api-key.hush-hush",)) == 400
    assert "hush-hush" not in caplog.text


WRONG_KEYS = ("", "h", "hush-hus", "hush-hush2", "hush-hushhush-hush", "HUSH-HUSH", "hush-hus\udcff", "\udcff\udcfe")


@pytest.mark.parametrize("key", WRONG_KEYS)
async def test_nothing_but_the_whole_key_will_do(serve_edge: ServeEdge, key: str) -> None:
    edge = await serve_edge(api_key="hush-hush")
    reader, writer = await asyncio.open_connection("127.0.0.1", int(edge.url.rsplit(":", 1)[1]))
    head = f"GET /v1/models HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: Bearer {key}\r\n\r\n"
    writer.write(head.encode(errors="surrogateescape"))
    assert (await reader.readline()).split()[1] == b"401"
    writer.close()


@pytest.mark.parametrize("key", ["", "hush", "hush-hush2"])
async def test_an_offered_key_is_checked_as_well(serve_edge: ServeEdge, key: str) -> None:
    edge = await serve_edge(api_key="hush-hush")
    assert await handshake_status(edge, {}, ("realtime", f"openai-insecure-api-key.{key}")) == 401


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.5", "voice.example"])
def test_without_a_key_only_loopback_is_served(host: str) -> None:
    with pytest.raises(ExposureRefused, match="ANTIPHON_API_KEY"):
        check_exposure(ServerSettings(host=host), has_keys=False)
    check_exposure(ServerSettings(host=host), has_keys=True)


PROXY = ServerSettings(trusted_proxies=("127.0.0.1",), allowed_hosts=("voice.example",))
PASSED_ON = {"X-Forwarded-For": "192.0.2.7", "X-Forwarded-Proto": "https", "X-Forwarded-Host": "voice.example"}


def test_behind_a_proxy_loopback_is_not_this_machine_alone() -> None:
    with pytest.raises(ExposureRefused, match=r"server\.trusted_proxies: .* set ANTIPHON_API_KEY"):
        check_exposure(PROXY, has_keys=False)
    check_exposure(PROXY, has_keys=True)


async def test_behind_a_proxy_host_and_origin_are_those_of_the_client(
    serve_edge: ServeEdge, caplog: pytest.LogCaptureFixture
) -> None:
    edge = await serve_edge(settings=PROXY)
    page = {"Origin": "https://voice.example"}
    with caplog.at_level(logging.INFO, "realtime.access"):
        assert await status(edge, PASSED_ON | page, "/v1/models") == 200
    assert caplog.records[-1].getMessage().endswith(" for 192.0.2.7")
    assert await handshake_status(edge, PASSED_ON | page) == 101
    assert await status(edge, {"Host": "voice.example", "X-Forwarded-Proto": "https"} | page) == 200
    assert await status(edge, {"Forwarded": "for=192.0.2.7;host=voice.example;proto=https"} | page) == 200
    assert await status(edge, PASSED_ON | {"Origin": "https://voice.example:443"}) == 200
    assert await status(edge, PASSED_ON | {"X-Forwarded-Host": "voice.example:443"} | page) == 200
    for stranger in ("http://voice.example", "https://voice.example:8443", "https://evil.example", "null"):
        assert await status(edge, PASSED_ON | {"Origin": stranger}) == 403
        assert await handshake_status(edge, PASSED_ON | {"Origin": stranger}) == 403
    assert await status(edge, PASSED_ON | {"X-Forwarded-Host": "evil.example"}) == 403
    assert await status(edge, {"Forwarded": 'for="192.0.2.7'}) == 400


async def test_what_others_than_our_proxy_say_is_not_believed(serve_edge: ServeEdge, caplog: pytest.LogCaptureFixture) -> None:
    edge = await serve_edge(settings=ServerSettings(trusted_proxies=("10.0.0.0/8",), allowed_hosts=("voice.example",)))
    with caplog.at_level(logging.INFO, "realtime.access"):
        assert await status(edge, PASSED_ON, "/v1/models") == 200
    assert caplog.records[-1].getMessage().endswith(" for 127.0.0.1")
    assert await status(edge, PASSED_ON | {"Origin": "https://voice.example"}) == 403
    assert await status(edge, {"Host": "evil.example", "X-Forwarded-Host": "localhost"}) == 403
    assert await status(edge, {"Forwarded": 'for="192.0.2.7'}) == 200


async def test_a_proxy_that_we_know_nothing_of_may_add_https(serve_edge: ServeEdge) -> None:
    edge = await serve_edge(settings=ServerSettings(allowed_hosts=("voice.example",)))
    assert await status(edge, {"Host": "voice.example", "Origin": "https://voice.example"}) == 200
    assert await status(edge, {"Host": "voice.example", "Origin": "ftp://voice.example"}) == 403


@pytest.mark.parametrize(("path", "method"), [("/v1/realtime/calls", "POST"), ("/v1/realtime/calls/rtc_1", "DELETE")])
async def test_a_friends_page_may_call_by_webrtc(serve_edge: ServeEdge, path: str, method: str) -> None:
    edge = await serve_edge(settings=ServerSettings(allowed_origins=(FRIEND,)), api_key="key")
    asked = "authorization,content-type,x-openai-agents-sdk"
    asks = {"Origin": FRIEND, "Access-Control-Request-Method": method, "Access-Control-Request-Headers": asked}
    async with edge.http.options(edge.url + path, headers=asks) as preflight:
        assert preflight.status == 204  # a preflight bears no key
        assert set(asked.split(",")) <= set(preflight.headers["Access-Control-Allow-Headers"].split(", "))
        assert method in preflight.headers["Access-Control-Allow-Methods"].split(", ")
    async with edge.http.request(method, edge.url + path, headers={"Origin": FRIEND, "Authorization": "Bearer key"}) as answer:
        assert answer.headers["Access-Control-Allow-Origin"] == FRIEND
        assert "Location" in answer.headers["Access-Control-Expose-Headers"].split(", ")


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1"])
def test_loopback_needs_no_key(host: str) -> None:
    check_exposure(ServerSettings(host=host), has_keys=False)


@given(st.text())
def test_only_loopback_is_loopback(host: str) -> None:
    name = host.rstrip(".").lower()
    assert not is_loopback(host) or name.endswith("localhost") or name.startswith(("127.", "::1", "0:", "::ffff:127", "0000:"))
