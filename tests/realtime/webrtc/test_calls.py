"""Whole calls of a plain aiortc client with the edge over a fake graph: what is heard, said and told, and how they end."""

import asyncio
import os
import signal
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from fakes.edge import Edge
from fakes.graph import tone
from fakes.rtc_client import RtcClient
from realtime.media.opus_frames import OPUS_SILENCE
from realtime.webrtc.pacer import Pacer
from realtime.webrtc.packets import Outgoing

TEXT = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Speak."}]}


async def opus_of(edge: Edge, pcm: bytes) -> list[bytes]:
    async with edge.context.call_media.speak() as job:
        await job.write(pcm)
        job.finish()
        return [packet async for packet in job]


@asynccontextmanager
async def calling(edge: Edge, **session: object) -> AsyncGenerator[tuple[RtcClient, str]]:
    """A call whose `session.created` has come, and its location."""
    async with RtcClient() as client:
        location = await client.call(edge.http, edge.url, session or None)
        await client.event("session.created")
        yield client, location


async def ask(client: RtcClient) -> str:
    """A text turn; the response's id."""
    client.send({"type": "conversation.item.create", "item": TEXT})
    client.send({"type": "response.create"})
    return (await client.event("response.created"))["response"]["id"]


async def test_a_written_question_is_answered_by_sound(edge: Edge) -> None:
    async with calling(edge) as (client, _):
        response_id = await ask(client)
        started = await client.event("output_audio_buffer.started")
        stopped = await client.event("output_audio_buffer.stopped")
        assert (started["response_id"], stopped["response_id"]) == (response_id, response_id)
        sounding = [packet for packet in client.received if packet.payload != OPUS_SILENCE]
        said_ms = len("The capital of France is Paris.") * 60
        assert 0 <= len(sounding) * 20 - said_ms <= 40
        assert not any("response.output_audio.delta" in str(message) for message in client.messages)


async def test_a_spoken_question_is_heard(edge: Edge) -> None:
    async with calling(edge) as (client, _):
        client.say(await opus_of(edge, tone(960)))
        assert (await client.event("input_audio_buffer.speech_started"))["audio_start_ms"] >= 0
        heard = await client.event("conversation.item.input_audio_transcription.completed")
        assert heard["transcript"] == "What is the capital of France?"
        await client.event("output_audio_buffer.stopped")


async def test_speech_over_the_answer_silences_it_and_cuts_its_item(edge: Edge) -> None:
    edge.graph.answers = [tuple(f"This is sentence {number}. " for number in range(20))]
    async with calling(edge) as (client, _):
        response_id = await ask(client)
        await client.event("output_audio_buffer.started")
        client.say(await opus_of(edge, tone(400)))
        assert (await client.event("output_audio_buffer.cleared"))["response_id"] == response_id
        cleared_at = len(client.received)
        cut = await client.event("conversation.item.truncated")
        assert 0 < cut["audio_end_ms"] < 2_000
        await client.said()
        await client.event("input_audio_buffer.speech_stopped")
        assert {packet.payload for packet in client.received[cleared_at:]} == {OPUS_SILENCE}


async def test_the_client_clears_what_is_played(edge: Edge) -> None:
    edge.graph.answers = [tuple(f"This is sentence {number}. " for number in range(20))]
    async with calling(edge) as (client, _):
        response_id = await ask(client)
        await client.event("output_audio_buffer.started")
        client.send({"type": "response.cancel"})
        client.send({"type": "output_audio_buffer.clear"})
        assert (await client.event("output_audio_buffer.cleared"))["response_id"] == response_id
        await client.event("conversation.item.truncated")
        await ask(client)
        await client.event("output_audio_buffer.started")


async def test_the_form_configures_the_session(edge: Edge) -> None:
    async with RtcClient() as client:
        await client.call(edge.http, edge.url, {"type": "realtime", "model": "gpt-realtime", "instructions": "Sing."})
        created = (await client.event("session.created"))["session"]
        assert (created["instructions"], created["model"]) == ("Sing.", "antiphon-voice")


@pytest.mark.parametrize("method", ["POST", "DELETE"])
async def test_hanging_up_frees_the_seat_and_a_second_time_there_is_nothing(edge: Edge, method: str) -> None:
    async with calling(edge) as (client, location):
        path = f"{location}/hangup" if method == "POST" else location
        async with edge.http.request(method, edge.url + path) as response:
            assert response.status == 200
        await client.closed.wait()
        await edge.idle()
        async with edge.http.request(method, edge.url + path) as response:
            assert response.status == 404
            assert (await response.json())["error"]["code"] == "call_not_found"


async def test_a_call_without_data_channel_is_served_by_voice_alone(edge: Edge) -> None:
    async with RtcClient(channel=False) as client:
        await client.call(edge.http, edge.url)
        client.say(await opus_of(edge, tone(960)))
        await client.packet(lambda packet: packet.payload != OPUS_SILENCE)


async def test_the_server_leaves_with_a_word(edge: Edge) -> None:
    async with calling(edge) as (client, _):
        edge.context.drain.begin()
        assert (await client.event("error"))["error"]["code"] == "server_draining"
        await client.closed.wait()


async def test_binary_and_nonsense_on_the_channel_are_answered(edge: Edge) -> None:
    async with calling(edge) as (client, _):
        for message in (b"\x00\x01", "nonsense", "{}", '{"type":"x"}'):
            client.send(message)
            assert (await client.event("error"))["error"]["type"] == "invalid_request_error"
        await ask(client)


async def test_a_client_that_takes_no_event_at_all_is_spoken_with(edge: Edge, caplog: pytest.LogCaptureFixture) -> None:
    async with RtcClient() as client:
        offer = (await client.offer()).replace("a=max-message-size:262144", "a=max-message-size:1")
        headers = {"Content-Type": "application/sdp"}
        async with edge.http.post(f"{edge.url}/v1/realtime/calls", data=offer, headers=headers) as response:
            await client.accept(await response.text())
        await client.opened.wait()
        client.say(await opus_of(edge, tone(960)))
        await client.packet(lambda packet: packet.payload != OPUS_SILENCE)
        assert client.messages == []
    assert "a call failed" not in caplog.text


async def test_a_line_of_the_log_is_ours(edge: Edge, caplog: pytest.LogCaptureFixture) -> None:
    """What a library has to say of each pair of addresses is left out."""
    caplog.set_level("INFO")
    async with calling(edge):
        pass
    assert {record.name.partition(".")[0] for record in caplog.records} & {"aioice", "aiortc"} == set()


async def test_a_lost_media_worker_costs_a_moment_of_sound_and_not_the_call(edge: Edge) -> None:
    async with calling(edge) as (client, _):
        beginning, rest = await opus_of(edge, tone(96)), await opus_of(edge, tone(960))
        client.say(beginning)
        await client.event("input_audio_buffer.speech_started")
        assert edge.context.call_media.pid is not None
        os.kill(edge.context.call_media.pid, signal.SIGKILL)
        client.say(rest)
        await client.event("response.created")
        await client.event("output_audio_buffer.started")


async def test_two_calls_at_once_hear_their_own(edge: Edge) -> None:
    async with calling(edge) as (one, _), calling(edge) as (other, _):
        first = await ask(one)
        second = await ask(other)
        started = await asyncio.gather(one.event("output_audio_buffer.started"), other.event("output_audio_buffer.started"))
        assert [event["response_id"] for event in started] == [first, second]


async def test_a_fault_of_ours_in_the_sender_ends_the_call_and_is_logged_once(
    edge: Edge, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def broken(_pacer: Pacer) -> Outgoing:
        raise RuntimeError("no clock")

    monkeypatch.setattr(Pacer, "next", broken)
    async with RtcClient() as client:
        await client.call(edge.http, edge.url)
        await client.closed.wait()
        await edge.left_alone()
    failures = [record for record in caplog.records if record.exc_info is not None]
    assert [record.getMessage() for record in failures] == ["a call failed"]
    assert "no clock" in caplog.text
