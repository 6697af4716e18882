"""What admission costs: decisions of one process at one Redis, at a full house with a waiting room in use.

    tests/run bench admission [--short]

Prints one JSON object as its last line. Times in milliseconds. Open loop: decisions come as a Poisson process and are counted
from when they were to come, so a store that falls behind shows it. `growth_100k`: the median of the same decision, one after the
other, at 100,000 sessions over that at 10, of the decision that grows most; `closed64`: 64 callers who do nothing else.
"""

import asyncio
import gc
import random
import tempfile
import time
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from statistics import median
from typing import Any

import msgspec
import uvloop

from bench.admission_crowd import Crowd, Taken, full_house
from bench.command import chosen, note, reported
from bench.voice import percentile
from fakes.redis_server import running_redis
from sessions.store.address import open_store

RATE = 3000
SEATS = 1000
CALLERS = 64


class Plan(msgspec.Struct, frozen=True):
    """`rounds` of each measurement, of which the medians count. Decisions in a round: `at_once` of 64 callers, `in_turn`."""

    rounds: int
    open_loop_s: float
    at_once: int
    in_turn: int
    few: int
    many: int


FULL = Plan(rounds=3, open_loop_s=10.0, at_once=20_000, in_turn=4000, few=10, many=100_000)
SHORT = Plan(rounds=3, open_loop_s=1.0, at_once=2000, in_turn=600, few=10, many=2000)


@asynccontextmanager
async def crowd_at_redis(seats: int) -> AsyncGenerator[Crowd]:
    with tempfile.TemporaryDirectory() as folder:
        async with running_redis(Path(folder)) as server, open_store(server.url, 0.0) as store, full_house(store, seats) as crowd:
            yield crowd


async def measure(plan: Plan) -> dict[str, Any]:
    result: dict[str, Any] = {}
    async with crowd_at_redis(SEATS) as crowd:
        result |= await at_3000(crowd, plan, "")
        result |= await closed_loop(crowd, plan)
    async with open_store("memory://", settle_s=0.0) as memory, full_house(memory, SEATS) as crowd:
        result |= await at_3000(crowd, plan, "memory_")
    return result | await growth(plan)


async def at_3000(crowd: Crowd, plan: Plan, where: str) -> dict[str, Any]:
    rounds = [await open_loop(crowd, plan.open_loop_s, seed) for seed in range(plan.rounds)]
    for taken in rounds:
        note(f"{where}open loop: {shown(taken)}")
    return {
        f"{where}p99_ms_at_3000": percentile_of_rounds(rounds, 0.99),
        f"{where}p50_ms_at_3000": percentile_of_rounds(rounds, 0.5),
        f"{where}open_loop_decisions": sum(len(taken.all_ms) for taken in rounds),
    }


async def closed_loop(crowd: Crowd, plan: Plan) -> dict[str, Any]:
    rounds = [await with_callers(crowd, plan.at_once, CALLERS) for _ in range(plan.rounds)]
    for taken in rounds:
        note(f"closed loop: {shown(taken)}")
    return {
        "closed64_p99_ms": percentile_of_rounds(rounds, 0.99),
        "closed64_p50_ms": percentile_of_rounds(rounds, 0.5),
        "closed64_per_s": round(median(len(taken.all_ms) / taken.wall_s for taken in rounds)),
    }


async def growth(plan: Plan) -> dict[str, Any]:
    """Both houses stand side by side, and are measured in turn: what else the machine does meanwhile slows both."""
    few, many = Taken(), Taken()
    async with AsyncExitStack() as stack:
        small = await stack.enter_async_context(crowd_at_redis(plan.few))
        large = await stack.enter_async_context(crowd_at_redis(plan.many))
        for _ in range(2 * plan.rounds):
            await with_callers(small, plan.in_turn // 2, 1, few)
            await with_callers(large, plan.in_turn // 2, 1, many)
    ratios = {what: round(median(many.ms[what]) / median(few.ms[what]), 2) for what in sorted(few.ms)}
    note(f"at {plan.few}: {shown(few)}; at {plan.many}: {shown(many)}")
    return {"growth_100k": max(ratios.values()), "growth_of": ratios, "live": plan.many}


# ── callers


async def open_loop(crowd: Crowd, duration_s: float, seed: int) -> Taken:
    draw, taken = random.Random(seed), Taken()
    collect_before()
    began = time.perf_counter()
    due = began
    async with asyncio.TaskGroup() as group:
        while due < began + duration_s:
            due += draw.expovariate(RATE)
            ahead_s = due - time.perf_counter()
            if ahead_s > 0:
                await asyncio.sleep(ahead_s)
            group.create_task(decide(crowd, taken, due))
    taken.wall_s = time.perf_counter() - began
    return taken


async def with_callers(crowd: Crowd, decisions: int, callers: int, taken: Taken | None = None) -> Taken:
    taken = taken or Taken()
    coming = iter(range(decisions))
    collect_before()
    began = time.perf_counter()

    async def call() -> None:
        for _ in coming:
            await decide(crowd, taken, time.perf_counter())

    async with asyncio.TaskGroup() as group:
        for _ in range(callers):
            group.create_task(call())
    taken.wall_s += time.perf_counter() - began
    return taken


async def decide(crowd: Crowd, taken: Taken, due: float) -> None:
    what, make = crowd.next_decision()
    await make()
    taken.add(what, (time.perf_counter() - due) * 1000)


def collect_before() -> None:
    """What was there before is not to be looked through in the middle."""
    gc.collect()
    gc.freeze()


# ── figures


def percentile_of_rounds(rounds: list[Taken], share: float) -> float:
    return round(median(fine_percentile(taken.all_ms, share) for taken in rounds), 2)


def fine_percentile(values: list[float], share: float) -> float:
    return percentile([ms * 100 for ms in values], share) / 100


def shown(taken: Taken) -> str:
    each = ", ".join(f"{what} {len(ms)}× {fine_percentile(ms, 0.5):.2f}" for what, ms in sorted(taken.ms.items()))
    rate = len(taken.all_ms) / taken.wall_s
    return f"{rate:.0f}/s, p50 {fine_percentile(taken.all_ms, 0.5):.2f}, p99 {fine_percentile(taken.all_ms, 0.99):.2f}: {each}"


async def main() -> None:
    await reported(measure(chosen(__doc__, FULL, SHORT)))


if __name__ == "__main__":
    uvloop.run(main())
