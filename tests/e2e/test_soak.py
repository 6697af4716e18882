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
FIRST_VANISHINGS = 120
"""Before the base is taken: memory grows with the first 240 or so, and no more after them (measured to 560)."""
LISTENING_MINUTES = 60
PIECE_BYTES = recordings.RATE // 5 * 2
"""200 ms."""
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

    async def many(count: int) -> None:
        for _ in range(count // 4):
            await asyncio.gather(*(come_and_go() for _ in range(4)))
        await settle(server)

    await many(FIRST_VANISHINGS)
    before = (descriptors(server), threads(server), server.rss_mb())
    await many(VANISHINGS)
    assert await active(server) == 0

    async def as_before() -> bool:
        """A connection that a client has just closed is closed by the server a moment later."""
        return descriptors(server) <= before[0] and threads(server) <= before[1]

    await until(as_before)
    assert server.rss_mb() <= before[2] + MAY_GROW_MB


async def test_an_hour_of_listening_costs_no_memory(server: Server) -> None:
    """A command a minute and silence around it, faster than real time, in pieces as large as a browser would send."""
    minute = recordings.silence(60)
    command = recordings.spoken_commands()[2].samples
    minute[recordings.RATE :][: len(command)] = command
    pcm = recordings.to_pcm(minute)
    no_answers = {"audio": {"input": {"turn_detection": {"type": "semantic_vad", "create_response": False}}}}
    sizes_mb: list[float] = []
    async with Conversation(server.url, no_answers) as talk:
        for _ in range(LISTENING_MINUTES):
            committed = talk.upcoming("input_audio_buffer.committed")
            for start in range(0, len(pcm), PIECE_BYTES):
                await talk.append(pcm[start : start + PIECE_BYTES])
            await committed
            sizes_mb.append(server.rss_mb())
        assert talk.errors == []
    # The first quarter is warm-up. What is on its way comes and goes; what stays is the least of each half of the rest.
    settled = sizes_mb[len(sizes_mb) // 4 :]
    half = len(settled) // 2
    assert min(settled[half:]) <= min(settled[:half]) + MAY_GROW_MB, sizes_mb
