"""Synthesis is far ahead of playback, and then the user speaks: on the wire not one packet of the old answer follows."""

import asyncio
import random

import pytest

from fakes.edge import Edge
from fakes.graph import MS_PER_CHARACTER, tone
from fakes.rtc_client import Received, RtcClient
from realtime.media.opus_frames import FRAME_MS, OPUS_SILENCE

LONG_ANSWER = tuple(f"This is sentence {number}. " for number in range(20))
SHORT_ANSWER = ("That was all.",)
QUESTION = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Speak."}]}
NO_ANSWER_TO_SPEECH = {
    "type": "realtime",
    "audio": {"input": {"turn_detection": {"type": "semantic_vad", "create_response": False}}},
}
MOST_PACKETS_HEARD = 30


@pytest.mark.parametrize(
    "times", [6, pytest.param(60, marks=[pytest.mark.full, pytest.mark.timeout(300)])], ids=["quick", "long"]
)
async def test_nothing_stale_follows_an_interruption(edge: Edge, times: int) -> None:
    draw = random.Random(3)
    edge.graph.answers = [*([LONG_ANSWER] * times), SHORT_ANSWER]
    async with edge.context.call_media.speak() as job:
        await job.write(tone(400))
        job.finish()
        speech = [packet async for packet in job]
    async with RtcClient() as client:
        await client.call(edge.http, edge.url, NO_ANSWER_TO_SPEECH)
        await client.event("session.created")
        for _ in range(times):
            assert sounding(await interrupted(client, speech, draw)) == 0
        began = len(client.received)
        await ask(client)
        await client.event("output_audio_buffer.stopped")
        said_ms = len(SHORT_ANSWER[0]) * MS_PER_CHARACTER
        assert 0 <= sounding(client.received[began:]) * FRAME_MS - said_ms <= 2 * FRAME_MS


async def interrupted(client: RtcClient, speech: list[bytes], draw: random.Random) -> list[Received]:
    """Speak at a random moment of an answer; what is received from the moment it is cleared until the end of the turn."""
    await ask(client)
    await client.event("output_audio_buffer.started")
    for _ in range(draw.randrange(MOST_PACKETS_HEARD)):
        await client.packet(lambda packet: packet.payload != OPUS_SILENCE)
    await asyncio.sleep(draw.uniform(0, FRAME_MS / 1000))
    client.say(speech)
    await client.event("output_audio_buffer.cleared")
    cleared_at = len(client.received)
    await client.event("input_audio_buffer.speech_stopped")
    return client.received[cleared_at:]


async def ask(client: RtcClient) -> None:
    client.send({"type": "conversation.item.create", "item": QUESTION})
    client.send({"type": "response.create"})


def sounding(packets: list[Received]) -> int:
    return sum(packet.payload != OPUS_SILENCE for packet in packets)
