"""However a connection ends, and whenever: no task, thread or descriptor of it is left."""

import asyncio
import contextlib
import os
import random
import re
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine

import pytest
import uvloop
from hypothesis import given, settings

from fakes.offers import mutated_offers
from fakes.peers import open_peer
from fakes.rtc_client import RtcClient
from realtime.webrtc.offer import OfferRefused, read_offer
from realtime.webrtc.peer import Peer

CLOSE_LIMIT_S = 2.0
LONGEST_PAUSE_S = 0.06
"""Longer than a connection takes to come up here."""

Phase = Callable[[Peer, RtcClient, random.Random], Awaitable[None]]


async def before_the_answer(peer: Peer, client: RtcClient, chance: random.Random) -> None:
    await client.offer()


async def during_the_answer(peer: Peer, client: RtcClient, chance: random.Random) -> None:
    answering = asyncio.create_task(peer.answer(read_offer(await client.offer())))
    for _ in range(chance.randrange(12)):
        await asyncio.sleep(0)
    answering.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await answering


async def never_connected(peer: Peer, client: RtcClient, chance: random.Random) -> None:
    await peer.answer(read_offer(await client.offer()))


async def at_any_moment(peer: Peer, client: RtcClient, chance: random.Random) -> None:
    await client.accept(await peer.answer(read_offer(await client.offer())))
    await asyncio.sleep(chance.uniform(0, LONGEST_PAUSE_S))


async def while_talking(peer: Peer, client: RtcClient, chance: random.Random) -> None:
    await client.connect(peer)
    client.send("x" * chance.randrange(100_000))
    sending = asyncio.create_task(peer.send(b"x" * chance.randrange(100_000)))
    await asyncio.sleep(chance.uniform(0, LONGEST_PAUSE_S))
    await sending


async def after_the_client_left(peer: Peer, client: RtcClient, chance: random.Random) -> None:
    await client.connect(peer)
    await client.close()


async def after_the_client_vanished(peer: Peer, client: RtcClient, chance: random.Random) -> None:
    await client.accept(await peer.answer(read_offer(await client.offer())))
    await asyncio.sleep(chance.uniform(0, LONGEST_PAUSE_S))
    client.vanish()


async def with_another_certificate(peer: Peer, client: RtcClient, chance: random.Random) -> None:
    forged = re.sub(r"(a=fingerprint:sha-256) \S+", r"\1 " + ":".join(["00"] * 32), await client.offer())
    await client.accept(await peer.answer(read_offer(forged)))
    await asyncio.sleep(chance.uniform(0, LONGEST_PAUSE_S))


PHASES: list[Phase] = [
    before_the_answer,
    during_the_answer,
    never_connected,
    at_any_moment,
    while_talking,
    after_the_client_left,
    after_the_client_vanished,
    with_another_certificate,
]


async def cycle(phase: Phase, chance: random.Random) -> float:
    """How long closing took, in seconds."""
    async with open_peer() as (peer, _, _), RtcClient() as client:
        await phase(peer, client, chance)
        began_s = time.perf_counter()
        await peer.close()
        return time.perf_counter() - began_s


def census() -> tuple[int, list[str], list[str]]:
    """Tasks, threads, descriptors."""
    return len(asyncio.all_tasks()), sorted(thread.name for thread in threading.enumerate()), sorted(os.listdir("/proc/self/fd"))


async def cycles(count: int) -> None:
    chance = random.Random(count)
    for phase in PHASES:
        await cycle(phase, chance)
    before = census()
    slowest_s = max([await cycle(chance.choice(PHASES), chance) for _ in range(count)])
    assert census() == before
    assert slowest_s < CLOSE_LIMIT_S


@settings(max_examples=50)
@given(mutated_offers)
def test_whatever_is_offered_leaves_nothing(sdp: str) -> None:
    async def offer() -> None:
        before = census()
        async with open_peer() as (peer, _, _):
            with contextlib.suppress(OfferRefused):
                await peer.answer(read_offer(sdp))
        assert census() == before

    run(offer())


def run(work: Coroutine[None, None, None]) -> None:
    """On the loop that the server runs on."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(work)


def test_forty_cycles_leave_nothing() -> None:
    run(cycles(40))


@pytest.mark.full
@pytest.mark.timeout(600)
def test_a_thousand_cycles_leave_nothing() -> None:
    run(cycles(1000))


@pytest.mark.parametrize("phase", PHASES, ids=lambda phase: phase.__name__)
async def test_each_end_leaves_nothing_at_once(phase: Phase) -> None:
    """On the loop of the standard library, where nothing is left to be collected later."""
    chance = random.Random(phase.__name__)
    await cycle(phase, chance)
    before = census()
    await cycle(phase, chance)
    assert census() == before
