"""Long forms: what must not add up over many turns and many clients."""

import asyncio
import random
from pathlib import Path

import pytest

import recordings
from bench.conversation import Conversation, Event
from bench.server import Server, until
from e2e.observing import active, settle

pytestmark = [pytest.mark.full, pytest.mark.real_models, pytest.mark.timeout(900)]

LONG = "Tell me a long story about a ship and its crew."
INTERRUPTIONS = 30
VANISHINGS = 200
LISTENING_MINUTES = 120
MAY_GROW_MB = 8


def descriptors(server: Server) -> int:
    return len(list(Path(f"/proc/{server.pid}/fd").iterdir()))


def threads(server: Server) -> int:
    return len(list(Path(f"/proc/{server.pid}/task").iterdir()))


async def test_nothing_stale_comes_after_an_interruption(server: Server) -> None:
    """At random phases of the answer: no audio of a response after its response.done, and no answer is lost."""
    draw = random.Random(5)
    interruption = recordings.spoken_commands()[2]
    async with Conversation(server.url) as talk:
        for _ in range(INTERRUPTIONS):
            began = talk.upcoming("response.output_audio.delta")
            asking = asyncio.create_task(talk.write(LONG, {"max_output_tokens": 120}))
            await began
            await asyncio.sleep(draw.random() * 1.5)
            await talk.ask(interruption)
            asking.cancel()
            await asyncio.wait([asking])
        assert stale(talk.events) == []
        assert talk.errors == []
    await settle(server)


def stale(events: list[Event]) -> list[str]:
    """Responses of which audio came after their end."""
    ended: set[str] = set()
    late: list[str] = []
    for event in events:
        if event["type"] == "response.done":
            ended.add(event["response"]["id"])
        elif event["type"] == "response.output_audio.delta" and event["response_id"] in ended:
            late.append(event["response_id"])
    return late


async def test_clients_that_vanish_at_any_moment_leave_nothing(server: Server) -> None:
    draw = random.Random(11)

    async def come_and_go() -> None:
        talk = Conversation(server.url)
        await talk.__aenter__()
        await talk.append(recordings.spoken_commands()[0].pcm() + recordings.to_pcm(recordings.silence(1)))
        await asyncio.sleep(draw.random() * 0.6)
        await talk.reset()

    await come_and_go()
    await settle(server)
    before = (descriptors(server), threads(server), server.rss_mb())
    for _ in range(VANISHINGS // 4):
        await asyncio.gather(*(come_and_go() for _ in range(4)))
    await settle(server)
    assert await active(server) == 0

    async def as_before() -> bool:
        """A connection that a client has just closed is closed by the server a moment later."""
        return descriptors(server) <= before[0] and threads(server) <= before[1]

    await until(as_before)
    assert server.rss_mb() <= before[2] + MAY_GROW_MB


async def test_two_hours_of_listening_costs_no_memory(server: Server) -> None:
    """Quiet with a word now and then, faster than real time."""
    minute = recordings.silence(60)
    word = recordings.noise(0.05, 0.2)
    minute[: len(word)] += word
    pcm = recordings.to_pcm(minute)
    quiet = {"audio": {"input": {"turn_detection": {"type": "semantic_vad", "create_response": False}}}}
    async with Conversation(server.url, quiet) as talk:
        sizes_mb: list[float] = []
        for minute_number in range(1, LISTENING_MINUTES + 1):
            await talk.append(pcm)
            if minute_number % 3 == 0:
                cleared = talk.upcoming("input_audio_buffer.cleared")
                await talk.send({"type": "input_audio_buffer.clear"})
                await cleared
                sizes_mb.append(server.rss_mb())
        # What is on its way comes and goes; what stays is the least of each half.
        half = len(sizes_mb) // 2
        assert min(sizes_mb[half:]) <= min(sizes_mb[:half]) + MAY_GROW_MB
        assert talk.errors == []
