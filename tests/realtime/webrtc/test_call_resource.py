"""A call as a resource of HTTP (RFC 9725): what it tells of itself, and what a client may tell of its network later."""

import asyncio
import re
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import asynccontextmanager

import pytest

from fakes.doors import Door
from fakes.edge import Edge, ServeEdge
from fakes.graph import tone
from fakes.rtc_client import RtcClient
from realtime.media.client import MediaClient
from realtime.media.opus_frames import OPUS_SILENCE
from realtime.settings import ServerSettings
from realtime.webrtc.settings import TurnSettings, WebRtcSettings
from realtime.webrtc.turn import Turn
from sessions.identity.key_ring import Grant

# pyright: reportPrivateUsage=false

PATH = "/v1/realtime/calls"
SDP = {"Content-Type": "application/sdp"}
FRAGMENT = {"Content-Type": "application/trickle-ice-sdpfrag"}
USABLE = "candidate:1 1 udp 2122194687 127.0.0.1 9 typ host"
FRIEND = "https://friend.example"


@asynccontextmanager
async def created(
    edge: Edge, client: RtcClient, offer: str, seen: Callable[[str], str] = lambda answer: answer
) -> AsyncGenerator[tuple[str, str]]:
    """Location and ETag of the call that answers `offer`, while it lasts; the client accepts what is `seen` of the answer."""
    async with edge.http.post(edge.url + PATH, data=offer, headers=SDP) as response:
        assert response.status == 201
        await client.accept(seen(await response.text()))
        location, tag = response.headers["Location"], response.headers["ETag"]
    yield location, tag
    async with edge.http.delete(edge.url + location):
        pass


async def patch(edge: Edge, location: str, body: str | bytes, headers: dict[str, str]) -> tuple[int, str]:
    """Status and code."""
    async with edge.http.patch(edge.url + location, data=body, headers=headers) as response:
        if response.status == 204:
            return 204, ""
        error = (await response.json())["error"]
        assert error["message"]
        return response.status, error["code"]


def lines(*attributes: str) -> str:
    return "".join(f"a={attribute}\r\n" for attribute in attributes)


def without_candidates(offer: str, end: Iterable[str] = ()) -> str:
    kept = [line for line in offer.splitlines() if not line.startswith(("a=candidate", "a=end-of-candidates"))]
    return "".join(f"{line}\r\n" for line in (*kept, *end))


@pytest.mark.parametrize(
    "end", [(), ("a=end-of-candidates",), ("a=candidate:",), ("a=candidate:1 1 udp 2122194687 somebody.local 4000 typ host",)]
)
async def test_an_offer_without_useful_candidates_is_connected(edge: Edge, end: tuple[str, ...]) -> None:
    async with RtcClient() as client, created(edge, client, without_candidates(await client.offer(), end)):
        await client.event("session.created")


class TestPatch:
    @pytest.mark.parametrize(
        "body",
        [
            lines(USABLE),
            lines("end-of-candidates"),
            lines("candidate:"),
            lines("candidate:1 1 udp 2122194687 somebody.local 4000 typ host"),
            lines("candidate:1 1 tcp 1518280447 127.0.0.1 9 typ host tcptype active"),
            "a=group:BUNDLE 0\r\nm=audio 9 UDP/TLS/RTP/SAVPF 0\r\n" + lines("mid:0", USABLE, "end-of-candidates"),
        ],
    )
    async def test_takes_candidates(self, edge: Edge, body: str) -> None:
        async with RtcClient() as client, created(edge, client, await client.offer()) as (location, tag):
            assert await patch(edge, location, body, FRAGMENT | {"If-Match": tag}) == (204, "")
            await client.event("session.created")
            assert await patch(edge, location, body, FRAGMENT | {"If-Match": f'"other", {tag}'}) == (204, "")
            await client.packet()

    async def test_needs_the_tag(self, edge: Edge) -> None:
        async with RtcClient() as client, created(edge, client, await client.offer()) as (location, tag):
            assert await patch(edge, location, lines(USABLE), FRAGMENT) == (428, "if_match_required")
            assert await patch(edge, location, lines(USABLE), FRAGMENT | {"If-Match": '"old"'}) == (412, "if_match_stale")
            assert await patch(edge, location, lines(USABLE), FRAGMENT | {"If-Match": f"W/{tag}"}) == (412, "if_match_stale")

    @pytest.mark.parametrize(
        "body", ["", "nonsense", lines("candidate:1 1 udp"), b"\xff\xfe", "\r\n\r\n", "v=0\r\n" + lines(USABLE)]
    )
    async def test_refuses_what_it_cannot_read(self, edge: Edge, body: str | bytes) -> None:
        async with RtcClient() as client, created(edge, client, await client.offer()) as (location, tag):
            assert await patch(edge, location, body, FRAGMENT | {"If-Match": tag}) == (400, "invalid_fragment")
            assert await patch(edge, location, body, SDP | {"If-Match": tag}) == (415, "invalid_content_type")

    async def test_a_restart_is_refused_with_the_way_out(self, edge: Edge) -> None:
        async with RtcClient() as client:
            offer = await client.offer()
            ours = next(line for line in offer.splitlines() if line.startswith("a=ice-ufrag:"))
            async with created(edge, client, offer) as (location, tag):
                assert await patch(edge, location, f"{ours}\r\n{lines(USABLE)}", FRAGMENT | {"If-Match": tag}) == (204, "")
                restart = lines("ice-ufrag:fresh", "ice-pwd:0123456789012345678901", USABLE)
                for match in (tag, "*"):
                    assert await patch(edge, location, restart, FRAGMENT | {"If-Match": match}) == (422, "ice_restart")
                await client.event("session.created")

    async def test_an_unknown_call_is_not_found(self, edge: Edge) -> None:
        assert await patch(edge, f"{PATH}/rtc_none", lines(USABLE), FRAGMENT | {"If-Match": "*"}) == (404, "call_not_found")

    async def test_a_body_without_end_is_refused(self, edge: Edge) -> None:
        async with RtcClient() as client, created(edge, client, await client.offer()) as (location, tag):
            body = lines(*[USABLE] * 10_000)
            assert (await patch(edge, location, body, FRAGMENT | {"If-Match": tag}))[0] == 413


async def test_a_client_that_does_not_find_the_server_is_found_by_a_candidate_that_comes_later(edge: Edge) -> None:
    def nowhere(answer: str) -> str:
        return re.sub(r"(a=candidate:\S+ 1 udp \S+) \S+ [0-9]+", r"\1 127.0.0.1 9", answer)

    async with RtcClient() as client:
        offer = await client.offer()
        there = [line.removeprefix("a=") for line in offer.splitlines() if line.startswith("a=candidate:")]
        async with created(edge, client, without_candidates(offer), nowhere) as (location, tag):
            assert await patch(edge, location, lines(*there), FRAGMENT | {"If-Match": tag}) == (204, "")
            await client.event("session.created")


class TestIceServers:
    @pytest.fixture
    def settings(self) -> TurnSettings:
        return TurnSettings(urls=("turn:127.0.0.1:9?transport=udp", "turns:turn.example.org"))

    async def _edge(self, serve_edge: ServeEdge, media: MediaClient, settings: TurnSettings, key: str | None = None) -> Edge:
        server = ServerSettings(webrtc=WebRtcSettings(turn=settings), allowed_origins=(FRIEND,))
        return await serve_edge(call_media=media, settings=server, turn=Turn(settings, "hush-hush"), api_key=key)

    async def test_are_linked_to_the_answer_and_to_options(
        self, serve_edge: ServeEdge, media: MediaClient, settings: TurnSettings, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("realtime.webrtc.ice.SERVER_TIMEOUT_S", 0.02)
        edge = await self._edge(serve_edge, media, settings)
        async with edge.http.options(edge.url + PATH) as response:
            assert (response.status, response.headers["Accept-Post"]) == (204, "application/sdp")
            first, second = response.headers.getall("Link")
            assert first.startswith('<turn:127.0.0.1:9?transport=udp>; rel="ice-server"; username="')
            assert second.startswith('<turns:turn.example.org>; rel="ice-server"; username="')
            assert 'credential-type="password"' in first
        async with RtcClient() as client:
            async with edge.http.post(edge.url + PATH, data=await client.offer(), headers=SDP) as response:
                assert len(response.headers.getall("Link")) == 2
            async with edge.http.delete(edge.url + response.headers["Location"]):
                pass

    async def test_are_for_whoever_has_the_key(
        self, serve_edge: ServeEdge, media: MediaClient, settings: TurnSettings, caplog: pytest.LogCaptureFixture
    ) -> None:
        edge = await self._edge(serve_edge, media, settings, key="key")
        for method, path in (("OPTIONS", PATH), ("GET", "/v1/realtime/ice_servers")):
            async with edge.http.request(method, edge.url + path) as response:
                assert (response.status, "Link" in response.headers) == (401, False)
        headers = {"Authorization": "Bearer key", "Origin": FRIEND}
        async with edge.http.get(edge.url + "/v1/realtime/ice_servers", headers=headers) as response:
            (server,) = await response.json()
            assert set(server) == {"urls", "username", "credential"}
            assert response.headers["Access-Control-Expose-Headers"] == "Location, ETag, Link, Retry-After"
            assert response.headers["Cache-Control"] == "no-store"
        assert server["credential"] not in caplog.text
        assert "hush-hush" not in caplog.text

    async def test_without_a_turn_server_there_are_none(self, edge: Edge) -> None:
        async with edge.http.get(edge.url + "/v1/realtime/ice_servers") as response:
            assert await response.json() == []
        async with edge.http.options(edge.url + PATH) as response:
            assert (response.status, "Link" in response.headers) == (204, False)

    async def test_a_friends_page_may_trickle(self, serve_edge: ServeEdge, media: MediaClient, settings: TurnSettings) -> None:
        edge = await self._edge(serve_edge, media, settings)
        asks = {"Origin": FRIEND, "Access-Control-Request-Method": "PATCH", "Access-Control-Request-Headers": "if-match"}
        async with edge.http.options(f"{edge.url}{PATH}/rtc_1", headers=asks) as preflight:
            assert preflight.status == 204
            assert "if-match" in preflight.headers["Access-Control-Allow-Headers"]
            assert "PATCH" in preflight.headers["Access-Control-Allow-Methods"]


async def test_a_whip_client_feeds_sound_in_and_its_answers_are_not_heard(serve_edge: ServeEdge, media: MediaClient) -> None:
    edge = await serve_edge(call_media=media, api_key="key")
    bearer = {"Authorization": "Bearer key"}
    async with media.speak() as job:
        await job.write(tone(960))
        job.finish()
        question = [packet async for packet in job]
    async with RtcClient(channel=False, direction="sendonly") as client:
        async with edge.http.post(edge.url + PATH, data=await client.offer(), headers=SDP) as refused:
            assert refused.status == 401
        async with edge.http.post(edge.url + PATH, data=await client.offer(), headers=SDP | bearer) as response:
            assert response.status == 201
            answer, location = await response.text(), response.headers["Location"]
        assert "a=recvonly" in answer
        assert "m=application" not in answer
        await client.accept(answer)
        client.say(question)
        await edge.graph.wait_for(lambda: edge.graph.of("thinker") != [])
        assert edge.graph.of("thinker")[0].outputs == ("text",)
        assert [packet for packet in client.received if packet.payload != OPUS_SILENCE] == []
        async with edge.http.delete(edge.url + location, headers=bearer) as response:
            assert response.status == 200
        await asyncio.wait_for(client.closed.wait(), 5)
    await edge.idle()


async def test_a_call_is_its_tenants_alone(serve_edge: ServeEdge, media: MediaClient) -> None:
    door = Door("key")
    theirs = {"Authorization": f"Bearer {(await door.ring.create(Grant(tenant='acme'))).text}"}
    ours = {"Authorization": f"Bearer {(await door.ring.create(Grant(tenant='default'))).text}"}
    edge = await serve_edge(call_media=media, door=door)
    async with RtcClient() as client:
        key = {"Authorization": "Bearer key"}
        async with edge.http.post(edge.url + PATH, data=await client.offer(), headers=SDP | key) as response:
            await client.accept(await response.text())
            location, tag = response.headers["Location"], response.headers["ETag"]
        fragment = FRAGMENT | {"If-Match": tag}
        for method, path, headers in (
            ("PATCH", location, fragment),
            ("DELETE", location, {}),
            ("POST", location + "/hangup", {}),
        ):
            async with edge.http.request(method, edge.url + path, headers=headers | theirs) as response:
                said = (await response.json())["error"]
            assert (response.status, said["code"]) == (404, "call_not_found")
        async with edge.http.delete(edge.url + location, headers=ours) as response:
            assert response.status == 200
    await edge.idle()
