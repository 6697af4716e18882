"""What deadlines are kept at which load: the schedulers of the DIFFUSION engine on simulated time.

    tests/run bench diffusion [--short]

Prints one JSON object as its last line. A step of n rows (at most 8) takes 4 + 0.5·n ms. Control (10 Hz, 50 ms, 4 steps), chunk
(2 Hz, 200 ms, 10 steps) and frames (2 Hz, 500 ms, 12 steps) come from 1:2:1 clients and share steps; a load of 1 is one, two and
one of them, 104 steps a second. `load_1pct`: the greatest load of which at most 1 % is late, shed or rejected; `strangers` the
same for Poisson processes. `shares`: time received over time reserved, at 1.2 times the load of `slack`; `in_vain`: the part of
all steps there that went into jobs not done in time. `rounds`: for [a, B, a, a] of 4 steps each in waves of 4. `overhead_us`:
`choose` and `ran` together at 16 members. `wall`: what is missed on the wall clock, in a worker of this process, with a small
network; times are scaled so that its step of eight rows takes eight of their milliseconds in the engine, and loads are parts of
what that does at the most.
"""

import asyncio
import time
from collections.abc import Callable
from statistics import fmean, median
from typing import Any

import msgspec

from bench.command import chosen, note, reported
from bench.diffusion_fifo import RequestFifo, StepFifo
from bench.diffusion_load import KINDS, STEPS_PER_LOAD, Crowd, Served, clients, served, strangers
from bench.diffusion_wall import on_the_wall_clock
from engines.diffusion.scheduling import Member, Scheduler
from engines.diffusion.scheduling.shares import RESERVED
from engines.diffusion.scheduling.steps import Steps
from engines.diffusion.scheduling.waves import Waves
from fakes.simulated_engine import SimulatedEngine, Work

ROWS = 8
OVERLOAD = 1.2
MISSES = 0.01
SCHEDULERS: dict[str, Callable[[], Scheduler]] = {
    "slack": lambda: Steps(ROWS),
    "step_fifo_shed": lambda: StepFifo(ROWS),
    "request_fifo": lambda: RequestFifo(ROWS),
}


class Plan(msgspec.Struct, frozen=True):
    """Each load is served for `duration_s` to every crowd that a seed gives; `precision` is that of the load found."""

    seeds: tuple[int, ...]
    duration_s: float
    precision: float
    with_strangers: bool
    turns: int
    wall_s: float
    """Each turn on the wall clock, of the times that are scaled."""
    wall_rounds: int


FULL = Plan(seeds=(1, 2, 3, 4), duration_s=60.0, precision=0.005, with_strangers=True, turns=20_000, wall_s=4.0, wall_rounds=4)
SHORT = Plan(seeds=(1,), duration_s=60.0, precision=0.02, with_strangers=False, turns=2000, wall_s=1.0, wall_rounds=1)


async def measure(plan: Plan) -> dict[str, Any]:
    loads = greatest_loads(clients, plan)
    result: dict[str, Any] = {"load_1pct": loads}
    result |= overloaded(loads["slack"] * OVERLOAD, plan)
    if plan.with_strangers:
        result["strangers"] = greatest_loads(strangers, plan)
    result["rounds"] = rounds_of_two_sizes()
    result["overhead_us"] = round(max(overhead_us(Steps(ROWS), plan), overhead_us(Waves(ROWS, 0.0, 0.0), plan)), 1)
    result["wall"] = await on_the_wall_clock(SCHEDULERS, plan.wall_rounds, plan.wall_s)
    return result


def greatest_loads(crowd: Crowd, plan: Plan) -> dict[str, float]:
    loads: dict[str, float] = {}
    for name, make in SCHEDULERS.items():
        loads[name] = round(greatest_load(make, crowd, plan), 2)
        note(f"{crowd.__name__}, {name}: load {loads[name]}, {loads[name] * STEPS_PER_LOAD:.0f} steps/s")
    return loads


def greatest_load(make: Callable[[], Scheduler], crowd: Crowd, plan: Plan) -> float:
    """By halving what is between a load that is borne and one that is not; the engine does a load of 9.6 at the most."""
    low, high = 0.02, 12.0
    while high / low > 1 + plan.precision:
        load = (low * high) ** 0.5
        if missed(crowds(make, crowd, load, plan)) <= MISSES:
            low = load
        else:
            high = load
    return low


def crowds(make: Callable[[], Scheduler], crowd: Crowd, load: float, plan: Plan) -> list[Served]:
    return [served(make(), crowd(load, plan.duration_s, seed)) for seed in plan.seeds]


def missed(all_served: list[Served], *names: str) -> float:
    return fmean(one.missed(*names) for one in all_served)


def overloaded(load: float, plan: Plan) -> dict[str, Any]:
    all_served = crowds(SCHEDULERS["slack"], clients, load, plan)
    busy_s = sum(call.took_s for one in all_served for call in one.record.calls)
    received = {kind.name: sum(one.tallies[kind.name].busy_s for one in all_served) / busy_s for kind in KINDS}
    misses = {kind.name: round(missed(all_served, kind.name), 4) for kind in KINDS}
    rows = sum(call.rows for one in all_served for call in one.record.calls)
    of_use = sum(end.work.calls for one in all_served for end in one.record.ends if end.in_time)
    return {
        "control_miss_1_2x": misses["control"],
        "unanswered": sum(one.unanswered for one in all_served),
        "shares": {kind.name: round(received[kind.name] / RESERVED[kind.service_class], 2) for kind in KINDS},
        "miss_1_2x": misses,
        "in_vain_1_2x": round(1 - of_use / rows, 3),
    }


def rounds_of_two_sizes() -> int:
    works = [Work(0.0, "batch", 4, keys=(size,)) for size in ("a", "B", "a", "a")]
    return len(SimulatedEngine(Waves(4, window_s=0.01, stable_s=0.005)).run(works).calls)


def overhead_us(scheduler: Scheduler, plan: Plan) -> float:
    """The median over decisions among 16 members of three classes, of which one in four has no deadline."""
    classes = [kind.service_class for kind in KINDS]
    for n in range(16):
        deadline = None if n % 4 == 3 else 1e6 + n
        assert scheduler.enter(Member(classes[n % 3], 0.0, deadline, (64, 64, "bfloat16"), 1, 10), 0.0) is None
    taken: list[float] = []
    now = 0.0
    for _ in range(plan.turns):
        began = time.perf_counter()
        run = scheduler.choose(now).run
        took_s = (4 + 0.5 * len(run)) / 1000
        scheduler.ran(run, took_s)
        taken.append(time.perf_counter() - began)
        now += took_s
    return median(taken) * 1e6


async def main() -> None:
    await reported(measure(chosen(__doc__, FULL, SHORT)))


if __name__ == "__main__":
    asyncio.run(main())
