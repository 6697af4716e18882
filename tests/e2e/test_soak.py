"""Long forms: what must not add up over many turns. Over many clients: test_come_and_go.py."""

import asyncio
import random

import pytest

import recordings
from bench.conversation import Conversation, Event
from bench.cpu_time import cpu_s
from bench.server import Server
from e2e.observing import settle

pytestmark = [pytest.mark.full, pytest.mark.real_models, pytest.mark.timeout(900)]

LONG = "Tell me a long story about a ship and its crew."
INTERRUPTIONS = 15
LISTENING_MINUTES = 60
PIECE_BYTES = recordings.RATE // 5 * 2
"""200 ms."""
MAY_GROW_MB = 8
MAY_COST = 1.25
"""Times what the first half cost: other programs run beside this."""


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


async def test_an_hour_of_listening_costs_no_memory_and_no_more_at_its_end(server: Server) -> None:
    """A command a minute and silence around it, faster than real time, in pieces as large as a browser would send."""
    minute = recordings.silence(60)
    command = recordings.spoken_commands()[2].samples
    minute[recordings.RATE :][: len(command)] = command
    pcm = recordings.to_pcm(minute)
    no_answers = {"audio": {"input": {"turn_detection": {"type": "semantic_vad", "create_response": False}}}}
    sizes_mb: list[float] = []
    costs_s: list[float] = []
    async with Conversation(server.url, no_answers) as talk:
        for _ in range(LISTENING_MINUTES):
            used_s = cpu_s(server.pid)
            committed = talk.upcoming("input_audio_buffer.committed")
            for start in range(0, len(pcm), PIECE_BYTES):
                await talk.append(pcm[start : start + PIECE_BYTES])
            await committed
            costs_s.append(cpu_s(server.pid) - used_s)
            sizes_mb.append(server.rss_mb())
        assert talk.errors == []
    # The first quarter is warm-up. What is on its way comes and goes; what stays is the least of each half of the rest.
    settled = sizes_mb[len(sizes_mb) // 4 :]
    half = len(settled) // 2
    assert min(settled[half:]) <= min(settled[:half]) + MAY_GROW_MB, sizes_mb
    # Sums: the kernel counts in ticks of 10 ms, and a minute costs four or five.
    assert sum(costs_s[len(costs_s) // 2 :]) <= sum(costs_s[: len(costs_s) // 2]) * MAY_COST, costs_s
