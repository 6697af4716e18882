"""A call is lost, or replaced, in mid-answer: the conversation goes on in another one, and the answer where it was heard last."""

import asyncio
import os
import re

import pytest

from fakes.edge import Edge, ServeEdge
from fakes.graph import MS_PER_CHARACTER
from fakes.returning import ask, called
from fakes.rtc_client import CallRefused, Received, RtcClient
from fakes.udp_relay import UdpRelay
from realtime.media.client import MediaClient
from realtime.media.opus_frames import FRAME_MS, OPUS_SILENCE
from realtime.settings import ServerSettings
from realtime.webrtc.settings import WebRtcSettings
from sessions.retention.settings import SessionLimits
from sessions.states import State
from strict_client import strict_event

HANDOVER_S = 1.0
DETECT_S = 2.5 + 0.5
SENTENCES = tuple(f"This is sentence {number}. " for number in range(2))
SAID_MS = MS_PER_CHARACTER * sum(map(len, SENTENCES))


def sounding(packets: list[Received]) -> list[bytes]:
    return [packet.payload for packet in packets if packet.payload != OPUS_SILENCE]


def sounds(packet: Received) -> bool:
    return packet.payload != OPUS_SILENCE


async def heard(client: RtcClient, packets: int) -> None:
    for _ in range(packets):
        await client.packet(sounds)


async def until_detached(edge: Edge) -> None:
    async with asyncio.timeout(DETECT_S):
        while [info.state for info in edge.context.voice_sessions.sessions()] != [State.DETACHED]:  # noqa: ASYNC110 (seats ring no bell)
            await asyncio.sleep(0)


async def test_the_answer_goes_on_in_a_new_call_within_a_second_and_nothing_of_it_is_missing(edge: Edge) -> None:
    edge.graph.answers = [SENTENCES]
    async with RtcClient() as old, RtcClient() as new:
        created = await called(edge, old)
        response_id = await ask(old)
        await heard(old, 40)
        began_s = asyncio.get_running_loop().time()
        again = await called(edge, new, created)
        first = await new.packet(sounds)
        assert first.arrived_s - began_s < HANDOVER_S
        assert again["session"]["id"] == created["session"]["id"]
        assert again["resync"]["items"][-1]["content"] == [{"type": "output_audio", "transcript": "".join(SENTENCES)}]
        assert (await new.event("output_audio_buffer.started"))["response_id"] == response_id
        assert (await new.event("output_audio_buffer.stopped"))["response_id"] == response_id
        before, after = sounding(old.received), sounding(new.received)
        overlap = len(set(before) & set(after))
        assert overlap <= 3  # what was on its way
        assert 0 <= (len(before) + len(after) - overlap) * FRAME_MS - SAID_MS <= 3 * FRAME_MS
        for message in new.messages:
            strict_event(message)


async def test_the_older_call_hears_that_it_is_superseded_and_ends(edge: Edge) -> None:
    async with RtcClient() as old, RtcClient() as new:
        created = await called(edge, old)
        await called(edge, new, created)
        assert (await old.event("error"))["error"]["code"] == "superseded"
        await old.closed.wait()
        old_packets = len(old.received)
        await ask(new)
        assert len(old.received) == old_packets
        assert len(edge.context.voice_sessions.sessions()) == 1


async def test_an_answer_that_was_lost_on_the_way_is_played_again_from_where_it_was_heard(edge: Edge) -> None:
    edge.graph.answers = [SENTENCES]
    async with UdpRelay() as relay, RtcClient(relay=relay) as old, RtcClient() as new:
        created = await called(edge, old)
        await ask(old)
        await heard(old, 40)
        relay.cut()
        cut_at = len(sounding(old.received))
        await until_detached(edge)
        await called(edge, new, created)
        await new.event("output_audio_buffer.stopped")
        before, after = sounding(old.received)[:cut_at], sounding(new.received)
        overlap = len(set(before) & set(after))
        assert overlap <= 10
        assert 0 <= (len(before) + len(after) - overlap) * FRAME_MS - SAID_MS <= 3 * FRAME_MS
    assert len(edge.graph.of("thinker")) == 1


async def test_of_what_a_client_that_only_listens_has_heard_hardly_anything_is_played_again(edge: Edge) -> None:
    edge.graph.answers = [SENTENCES]
    async with RtcClient(silence=None) as old, RtcClient(silence=None) as new:
        created = await called(edge, old)
        old.hush()
        await ask(old)
        await heard(old, 45)  # a client of which nothing comes is asked after 1 s at the latest
        await called(edge, new, created)
        await new.event("output_audio_buffer.stopped")
        before, after = sounding(old.received), sounding(new.received)
        overlap = len(set(before) & set(after))
        assert overlap * FRAME_MS <= 200
        assert 0 <= (len(before) + len(after) - overlap) * FRAME_MS - SAID_MS <= 3 * FRAME_MS


async def test_an_answer_that_nobody_came_back_for_is_cut_to_what_was_heard(serve_edge: ServeEdge, media: MediaClient) -> None:
    edge = await serve_edge(call_media=media, limits=SessionLimits(answer_grace_s=0.001))
    edge.graph.answers = [SENTENCES]
    async with UdpRelay() as relay, RtcClient(relay=relay) as old, RtcClient() as new:
        created = await called(edge, old)
        await ask(old)
        await heard(old, 60)
        relay.cut()
        heard_ms = len(sounding(old.received)) * FRAME_MS
        await until_detached(edge)
        again = await called(edge, new, created)
        (part,) = again["resync"]["items"][-1]["content"]
        assert "".join(SENTENCES).startswith(part["transcript"])
        assert 0 <= heard_ms - len(part["transcript"]) * MS_PER_CHARACTER <= 500
        assert again["resync"]["response"] is None
        await new.event("output_audio_buffer.cleared")
        assert sounding(new.received) == []
    await edge.left_alone()


async def test_a_client_that_closes_its_call_ends_the_session(edge: Edge) -> None:
    async with RtcClient() as client, RtcClient() as late:
        created = await called(edge, client)
        await client.close()
        await edge.idle()
        with pytest.raises(CallRefused, match="open a new session") as refused:
            await called(edge, late, created)
        assert refused.value.status == 404


async def test_a_call_that_comes_back_may_change_its_session_as_it_does(edge: Edge) -> None:
    async with RtcClient() as old, RtcClient() as new:
        created = await called(edge, old, session={"type": "realtime", "instructions": "Sing.", "tracing": "auto"})
        again = await called(edge, new, created, {"type": "realtime", "audio": {"output": {"voice": "heart"}}})
        assert again["session"]["instructions"] == "Sing."
        changed = (await new.event("session.updated"))["session"]
        assert (changed["instructions"], changed["tracing"]) == ("Sing.", "auto")
        assert changed["audio"]["output"]["voice"] == "heart"


async def test_a_wish_that_cannot_be_fulfilled_refuses_the_call_and_leaves_the_session(edge: Edge) -> None:
    async with RtcClient() as old, RtcClient() as new:
        created = await called(edge, old)
        with pytest.raises(CallRefused) as refused:
            await called(edge, new, created, {"type": "realtime", "audio": {"output": {"voice": "nobody"}}})
        assert refused.value.status == 400
        await ask(old)


async def test_a_call_that_never_connects_keeps_the_session_for_another(serve_edge: ServeEdge, media: MediaClient) -> None:
    settings = ServerSettings(webrtc=WebRtcSettings(connect_timeout_s=1.5))
    edge = await serve_edge(call_media=media, settings=settings)
    async with RtcClient() as old, RtcClient() as silent, RtcClient() as new:
        created = await called(edge, old)
        url = f"{edge.url}/v1/realtime/calls?resume={created['resume']['token']}"
        async with edge.http.post(url, data=await silent.offer(), headers={"Content-Type": "application/sdp"}) as response:
            assert response.status == 201
        await until_detached(edge)
        await called(edge, new, created)  # the newer token was on a data channel that never opened
        await ask(new)
    await edge.left_alone()


async def test_from_a_call_to_a_socket_and_back(edge: Edge) -> None:
    edge.graph.answers = [SENTENCES]
    async with RtcClient() as call, RtcClient() as another:
        created = await called(edge, call)
        response_id = await ask(call)
        await heard(call, 30)
        async with edge.socket(f"/v1/realtime?resume={created['resume']['token']}") as client:
            told = await client.until("session.created")
            assert told["session"]["id"] == created["session"]["id"]
            (part,) = told["resync"]["items"][-1]["content"]
            assert 0 < len(part["transcript"]) * MS_PER_CHARACTER <= 30 * FRAME_MS + 500
            assert (await client.until("output_audio_buffer.cleared"))["response_id"] == response_id
            assert (await call.event("error"))["error"]["code"] == "superseded"
            await client.send("response.create")
            await client.until("response.output_audio.delta")
            again = await called(edge, another, told)
            assert await client.closed() == 4409
            assert again["session"]["id"] == created["session"]["id"]
            another.send({"type": "response.cancel"})
            await ask(another)
            await another.packet(sounds)


async def test_another_codec_cannot_play_on_what_was_encoded(edge: Edge) -> None:
    edge.graph.answers = [SENTENCES]
    async with RtcClient() as old, RtcClient() as new:
        created = await called(edge, old)
        response_id = await ask(old)
        plain = only_pcmu(await new.offer())
        url = f"{edge.url}/v1/realtime/calls?resume={created['resume']['token']}"
        async with edge.http.post(url, data=plain, headers={"Content-Type": "application/sdp"}) as response:
            assert response.status == 201
            await new.accept(await response.text())
        assert (await new.event("output_audio_buffer.cleared"))["response_id"] == response_id
        await ask(new)


@pytest.mark.parametrize("times", [10, pytest.param(100, marks=[pytest.mark.full, pytest.mark.timeout(300)])])
async def test_coming_back_again_and_again_leaves_nothing(edge: Edge, times: int) -> None:
    async with RtcClient() as first:
        created = await called(edge, first)
        tasks, descriptors = len(asyncio.all_tasks()), len(os.listdir("/proc/self/fd"))
        last = first
        for _ in range(times):
            async with RtcClient() as client:
                created = await called(edge, client, created)
                await last.closed.wait()
                last = client
        await edge.idle()
    assert len(asyncio.all_tasks()) <= tasks
    assert len(os.listdir("/proc/self/fd")) <= descriptors


def only_pcmu(offer: str) -> str:
    """Without Opus."""
    return re.sub(r"(m=audio \d+ \S+)[ \d]*", r"\1 0", offer)
