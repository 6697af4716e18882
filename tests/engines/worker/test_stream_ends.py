"""Streams that begin early, end early or hold nothing; afterwards nothing is left of them."""

import asyncio
import gc
import os
import random
import threading

import pytest

from engines.messages.to_gateway import Aborted, Taken
from engines.messages.to_worker import PUSH_WINDOW, Abort
from engines.worker.memory import resident_bytes
from fakes.gateway import FakeGateway
from fakes.worker_bench import Bench


async def test_a_chunk_waits_for_a_consumer_that_is_not_open_yet(bench: Bench) -> None:
    gateway = await bench.gateway()
    bench.model.hold()
    gateway.submit("busy")
    gateway.push("busy", "x")
    await bench.model.step_begins()
    gateway.submit("early")
    gateway.push("early", "a", "b", final=True)
    await gateway.heard()
    assert bench.model.opened == 1
    bench.model.release()
    assert await gateway.texts("early") == ["a", "b", ""]


async def test_two_chunks_of_one_step_are_two_and_an_empty_one_gives_nothing_but_its_credit_back(bench: Bench) -> None:
    gateway = await bench.gateway()
    gateway.submit("r")
    gateway.push("r", *[""] * (PUSH_WINDOW + 1))
    gateway.push("r", "many", "", final=True)
    assert await gateway.texts("r") == ["many"] * 3 + [""]
    taken = sum(message.count for message in gateway.unread if isinstance(message, Taken))
    assert taken == PUSH_WINDOW + 3


async def test_an_input_of_nothing_at_all_ends_in_one_empty_chunk(bench: Bench) -> None:
    gateway = await bench.gateway()
    gateway.submit("r")
    gateway.push("r", final=True)
    (only,) = await gateway.chunks("r")
    assert (only.seq, only.content.is_empty) == (0, True)


async def test_a_consumer_whose_producer_never_ends_holds_only_its_slot(bench: Bench) -> None:
    gateway = await bench.gateway()
    gateway.submit("r")
    gateway.push("r", "a", "b")
    for _ in range(2):
        await gateway.chunk("r")
    steps = len(bench.model.batches)
    await gateway.heard()
    assert len(bench.model.batches) == steps
    gateway.send(Abort("r"))
    await gateway.next(Aborted)
    await gateway.idle()


async def test_a_hundred_streams_aborted_after_their_first_chunk_leave_no_keys(bench: Bench) -> None:
    bench.slots = 100
    gateway = await bench.gateway()
    names = [f"r{number}" for number in range(100)]
    for name in names:
        gateway.submit(name, connector="elsewhere")
        gateway.push(name, "many", "many")
    for name in names:
        await gateway.chunk(name)
    assert len(bench.remote.keys) >= 100
    gateway.send(*(Abort(name) for name in names))
    for _ in names:
        await gateway.next(Aborted)
    assert bench.remote.keys == []
    await gateway.idle()
    for _ in names:
        await bench.model.closes()
    assert bench.model.opened == 100


async def connect_and_abort(bench: Bench, draw: random.Random) -> None:
    gateway = await FakeGateway.greet(bench.start())
    phase = draw.randrange(5)
    if phase > 0:
        gateway.submit("r", connector=draw.choice(("inline", "shared_memory", "elsewhere")), wait_ms=1000)
    if phase > 1:
        gateway.push("r", draw.choice(("a", "many", "raise")), final=draw.random() < 0.5)
    if phase > 2:
        await gateway.heard()
    if phase > 3:
        gateway.send(Abort("r"))
        await gateway.next(Aborted)
    await gateway.close()


async def loop(bench: Bench, rounds: int, draw: random.Random) -> None:
    for _ in range(rounds):
        await asyncio.gather(*(connect_and_abort(bench, draw) for _ in range(4)))
    await (await bench.gateway()).idle()


def held() -> tuple[int, int, int]:
    gc.collect()
    return len(os.listdir("/proc/self/fd")), threading.active_count(), len(asyncio.all_tasks())


@pytest.mark.timeout(120)
@pytest.mark.parametrize("rounds", [60, pytest.param(250, marks=pytest.mark.full)], ids=["quick", "a thousand"])
async def test_connections_aborted_at_random_phases_leave_nothing(bench: Bench, rounds: int) -> None:
    bench.slots = 2
    draw = random.Random(6)
    await loop(bench, 50, draw)
    before, resident = held(), resident_bytes()
    await loop(bench, rounds, draw)
    connections = 1  # the gateway that asked whether all is idle stays
    fds, threads, tasks = held()
    assert (fds - 2 * connections, threads, tasks - connections) == before
    assert bench.remote.keys == []
    assert resident_bytes() - resident < 8 << 20
