"""Those who come back late, twice, all at once, or are gone again before they are answered."""

import asyncio
import logging

import pytest

from fakes.edge import Edge, ServeEdge
from fakes.returning import ask, called
from fakes.rtc_client import RtcClient
from fakes.voice_client import settle
from realtime.errors import Refusal
from realtime.media.client import MediaClient
from realtime.openai_realtime.connection import ROUND_TRIP_S
from realtime.openai_realtime.opening import default_session
from realtime.openai_realtime.session_patch import SessionPatch
from realtime.settings import ServerSettings
from realtime.webrtc.call import Call, Return
from realtime.webrtc.calls import Calls
from realtime.webrtc.offer import Offer, read_offer
from realtime.webrtc.peer import Peer
from realtime.webrtc.settings import WebRtcSettings
from sessions.identity.principal import LOCAL
from sessions.retention.settings import SessionLimits
from sessions.voice.settings import VoiceSettings
from strict_client import alive

LONG = ("word " * 20,) * 100


async def status(edge: Edge, token: str, offer: str) -> int:
    """What a POST with this token gets; nothing is done about the answer."""
    headers = {"Content-Type": "application/sdp"}
    async with edge.http.post(f"{edge.url}/v1/realtime/calls?resume={token}", data=offer, headers=headers) as response:
        return response.status


async def test_a_late_try_with_an_older_token_disturbs_nobody(edge: Edge) -> None:
    async with RtcClient() as old, RtcClient() as new, RtcClient() as ghost:
        created = await called(edge, old)
        again = await called(edge, new, created)
        told_s = asyncio.get_running_loop().time()
        while asyncio.get_running_loop().time() < told_s + 2 * ROUND_TRIP_S:
            await new.packet()  # its own sound goes the other way meanwhile
        assert await status(edge, created["resume"]["token"], await ghost.offer()) == 404
        await ask(new)
        await called(edge, ghost, again)


async def test_a_call_that_waits_for_its_seat_is_answered_when_a_newer_connection_comes(
    serve_edge: ServeEdge, media: MediaClient
) -> None:
    edge = await serve_edge(call_media=media, limits=SessionLimits(maximum_sessions=1))
    async with edge.connect() as first:
        token = first.seen[0]["resume"]["token"]
        await first.socket.close(code=1001)
    await edge.left_alone()
    async with edge.connect() as newcomer, RtcClient() as caller:
        calling = asyncio.create_task(status(edge, token, await caller.offer()))
        async with asyncio.timeout(10):
            while (await edge.context.store.census()).waiting == 0:  # noqa: ASYNC110 (a queue rings no bell)
                await asyncio.sleep(0)
        async with edge.socket(f"/v1/realtime?resume={token}") as newest:
            assert await calling == 409
            await newcomer.socket.close()
            await newest.until("session.created")
    await edge.idle()


async def test_a_call_without_a_channel_cannot_have_got_its_token(edge: Edge) -> None:
    async with RtcClient() as old, RtcClient(channel=False) as voice_alone, RtcClient() as new:
        created = await called(edge, old)
        await voice_alone.call(edge.http, edge.url, resume=created["resume"]["token"])
        began_s = asyncio.get_running_loop().time()
        while asyncio.get_running_loop().time() < began_s + 2 * ROUND_TRIP_S:
            await voice_alone.packet()
        await called(edge, new, created)


async def test_a_full_queue_holds_up_nobody_who_comes_back_with_a_wish(serve_edge: ServeEdge, media: MediaClient) -> None:
    edge = await serve_edge(call_media=media, voice_settings=VoiceSettings(event_queue=8))
    edge.graph.answers = [LONG]
    gate = edge.graph.hold("audio")
    gate.step(1)
    async with RtcClient() as old, RtcClient() as new:
        headers = {"Content-Type": "application/sdp"}
        async with edge.http.post(f"{edge.url}/v1/realtime/calls?hold=1", data=await old.offer(), headers=headers) as response:
            await old.accept(await response.text())
        created = await old.event("session.created")
        await ask(old)
        await old.close()
        while not edge.all_detached():  # noqa: ASYNC110 (seats ring no bell)
            await asyncio.sleep(0)
        gate.release()
        await settle()  # more sound is made than anybody takes
        async with asyncio.timeout(10):
            again = await called(edge, new, created, {"type": "realtime", "instructions": "Sing."})
            assert again["resync"]["response"] is not None
            new.send({"type": "response.cancel"})
            assert (await new.event("session.updated"))["session"]["instructions"] == "Sing."
    await edge.left_alone()


async def test_many_that_come_back_at_once_leave_one_and_no_trace(
    serve_edge: ServeEdge, media: MediaClient, caplog: pytest.LogCaptureFixture
) -> None:
    edge = await serve_edge(call_media=media, settings=ServerSettings(webrtc=WebRtcSettings(connect_timeout_s=1.5)))
    edge.graph.answers = [LONG]
    async with RtcClient() as old, RtcClient() as first, RtcClient() as second, RtcClient() as third:
        created = await called(edge, old)
        await ask(old)
        token = created["resume"]["token"]
        offers = [await client.offer() for client in (first, second, third)]

        async def by_socket() -> str:
            async with edge.socket(f"/v1/realtime?resume={token}") as client:
                return (await client.next())["type"]

        came = await asyncio.gather(by_socket(), *(status(edge, token, offer) for offer in offers), by_socket())
        assert set(came) <= {201, 409, "session.created", "error"}
        assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []
        assert len(edge.context.voice_sessions.sessions()) <= 1
    await edge.left_alone()


class Gathering:
    """In place of `Peer.answer`: does not end by itself."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self.ended = asyncio.Event()

    async def answer(self, *_: object) -> str:
        self.begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.ended.set()
        raise AssertionError


@pytest.fixture
def gathering(monkeypatch: pytest.MonkeyPatch) -> Gathering:
    gathering = Gathering()
    monkeypatch.setattr(Peer, "answer", gathering.answer)
    return gathering


async def test_whoever_is_superseded_before_the_answer_is_told_by_its_status(edge: Edge, gathering: Gathering) -> None:
    async with edge.connect() as client, RtcClient() as late:
        token = client.seen[0]["resume"]["token"]
        waiting = asyncio.create_task(status(edge, token, await late.offer()))
        await gathering.begun.wait()
        async with edge.socket(f"/v1/realtime?resume={token}") as newest:
            assert await waiting == 409
            await newest.until("session.created")
            await alive(newest)


async def test_an_aborted_request_lets_go_of_its_session(edge: Edge, gathering: Gathering) -> None:
    async with edge.connect() as client, RtcClient() as gone:
        token = client.seen[0]["resume"]["token"]
        waiting = asyncio.create_task(status(edge, token, await gone.offer()))
        await gathering.begun.wait()
        waiting.cancel()
        await gathering.ended.wait()
        await edge.left_alone()
        async with edge.socket(f"/v1/realtime?resume={token}") as back:
            await back.until("session.created")


async def test_a_server_that_stops_does_not_wait_for_an_answer(edge: Edge, gathering: Gathering) -> None:
    calls = Calls(edge.context)
    async with RtcClient() as client:
        offer = read_offer(await client.offer())
        async with calls:
            opening = asyncio.create_task(calls.open(offer, default_session(edge.context), LOCAL))
            await gathering.begun.wait()
        with pytest.raises(Refusal) as refused:
            await opening
        assert refused.value.status == 503


async def test_nobody_comes_back_for_a_client_that_has_gone_already(edge: Edge) -> None:
    async with edge.connect() as client, RtcClient() as gone:
        back = Return(client.seen[0]["resume"]["token"], SessionPatch())
        call = Call(edge.context, "rtc_1", read_offer(await gone.offer()), back, LOCAL, held=False, place=None)
        call.answer.cancel()
        await call.run()
        await alive(client)


async def test_a_client_that_goes_just_when_it_is_answered_leaves_no_trace(
    edge: Edge, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with RtcClient() as gone:
        call = Call(
            edge.context, "rtc_1", read_offer(await gone.offer()), default_session(edge.context), LOCAL, held=False, place=None
        )
        answer = Peer.answer

        async def answer_too_late(peer: Peer, offer: Offer) -> str:
            given = await answer(peer, offer)
            call.answer.cancel()
            return given

        monkeypatch.setattr(Peer, "answer", answer_too_late)
        await call.run()
        assert edge.context.voice_sessions.sessions() == ()
        assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []
