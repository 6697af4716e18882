"""How long a chunk takes from the worker that emits it to whoever awaits it in the gateway, beside a bare Unix-socket hop.

    tests/run bench hop [--short]

Real worker processes with a model that stamps what it says; the real runtime, on the loop that the gateway runs on. Prints one
JSON object as its last line; the hops are idle ones, a few milliseconds apart. `load` is the machine's, of the last minute: what
else runs makes every hop start with cold caches.
"""

import argparse
import asyncio
import gc
import os
import time
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import uvloop

from bench.bare_hop import BareHop, bare_hop
from bench.command import note
from bench.server import running_server, until
from engines.deployment import GraphSettings, StageSettings
from engines.launching.worker_settings import WorkerSettings
from engines.parameters import Generation, Message
from engines.payloads import Payload
from engines.requests import Request
from engines.runtime import Runtime
from fakes.metronome import METRONOME

REPLICAS = (1, 2, 4)
GAP_MS = 4.0


class Plan(msgspec.Struct, frozen=True):
    """`hops` in each of `rounds` for each number of replicas, and as many bare ones between them."""

    rounds: int
    hops: int
    burst: int
    idle_s: float
    server: bool


FULL = Plan(rounds=6, hops=240, burst=20_000, idle_s=15.0, server=True)
SHORT = Plan(rounds=2, hops=60, burst=2_000, idle_s=3.0, server=False)


def settings(replicas: int) -> GraphSettings:
    return GraphSettings(
        pipeline=METRONOME.name,
        workers={f"beat{replicas}": WorkerSettings(stages=("metronome",), replicas=replicas)},
        stages={"metronome": StageSettings(model="fakes.metronome:Metronome", directory="/")},
        voices={},
    )


@asynccontextmanager
async def running(replicas: int) -> AsyncGenerator[Runtime]:
    runtime = Runtime(settings(replicas))
    async with runtime.running():
        await until(lambda: _all_report(runtime, replicas))
        yield runtime


async def _all_report(runtime: Runtime, replicas: int) -> bool:
    return runtime.ready.is_set() and len(await runtime.reports()) == replicas


async def hops_us(runtime: Runtime, name: str, count: int, gap_ms: float) -> list[float]:
    """Of one request; its session is a new one, so that the least loaded replica gets it."""
    asked = Generation(messages=(Message("user", f"{count} {gap_ms}"),))
    wanted = Request(request_id=name, entry="metronome", outputs=("time",), parameters={"metronome": asked}, session_id=name)
    taken: list[float] = []
    async with await runtime.submit(wanted) as stream:
        await stream.push(Payload(), final=True)
        async for delivery in stream:
            taken.append((time.monotonic_ns() - int(delivery.payload.text)) / 1000)
    return taken


async def round_us(runtime: Runtime, replicas: int, number: int, hops: int) -> list[float]:
    """The gateway hears as often, however many replicas there are: the more often, the warmer are its caches."""
    each = [hops_us(runtime, f"{number}-{replica}", hops // replicas, GAP_MS * replicas) for replica in range(replicas)]
    return [taken for one in await asyncio.gather(*each) for taken in one]


async def burst_per_s(runtime: Runtime, count: int) -> float:
    """Chunks a second of one request, as fast as its credit lets it."""
    started = time.monotonic()
    await hops_us(runtime, "burst", count, 0.0)
    return count / (time.monotonic() - started)


def wakeups(pid: int) -> int:
    """Voluntary context switches of all threads so far: each is a wait that ended or will end with a wake-up."""
    total = 0
    for status in Path(f"/proc/{pid}/task").glob("*/status"):
        total += next(int(line.split()[1]) for line in status.read_text().splitlines() if line.startswith("voluntary"))
    return total


async def wakeups_s(pid: int, seconds: float) -> float:
    before = wakeups(pid)
    await asyncio.sleep(seconds)
    return round((wakeups(pid) - before) / seconds, 2)


def pin(cores: Iterable[int], pids: Iterable[int]) -> None:
    for pid in pids:
        for thread in os.listdir(f"/proc/{pid}/task"):
            os.sched_setaffinity(int(thread), cores)


def separate(others: Sequence[int]) -> dict[str, int]:
    """This process, which is the gateway, on one core and what emits on another."""
    ours, *rest = sorted(os.sched_getaffinity(0))
    theirs = rest[0] if rest else ours
    pin({ours}, [os.getpid()])
    pin({theirs}, others)
    return {"gateway": ours, "workers": theirs}


def figures(taken: Sequence[float]) -> dict[str, float]:
    p50, p99 = np.percentile(taken, [50, 99])
    return {"p50_us": round(float(p50), 1), "p99_us": round(float(p99), 1)}


async def measure(plan: Plan, bare: BareHop) -> dict[str, Any]:
    async with AsyncExitStack() as stack:
        runtimes = {replicas: await stack.enter_async_context(running(replicas)) for replicas in REPLICAS}
        workers = [status.pid for runtime in runtimes.values() for status in runtime.worker_statuses() if status.pid]
        pinning = separate([*workers, bare.pid])
        gc.collect()
        gc.freeze()  # as the gateway does
        hops: dict[int, list[float]] = {replicas: [] for replicas in REPLICAS}
        bare_hops: list[float] = []
        for number in range(plan.rounds):
            for replicas, runtime in runtimes.items():
                bare_hops += await bare.hops_us(plan.hops, GAP_MS)
                hops[replicas] += await round_us(runtime, replicas, number, plan.hops)
        note(f"bare: {figures(bare_hops)}")
        burst = await burst_per_s(runtimes[1], plan.burst)
        idle = await wakeups_s(os.getpid(), plan.idle_s)
    everything = figures([taken for some in hops.values() for taken in some])
    bare_us = figures(bare_hops)
    return {
        **everything,
        "bare_hop_us": bare_us["p50_us"],
        "bare_hop_p99_us": bare_us["p99_us"],
        "ratio": round(everything["p50_us"] / bare_us["p50_us"], 2),
        "replicas": {str(replicas): figures(taken) for replicas, taken in hops.items()},
        "burst_chunks_s": round(burst),
        "idle_wakeups_s": idle,
        "pinning": pinning,
        "load": round(os.getloadavg()[0], 1),
    }


async def server_wakeups_s(seconds: float) -> float:
    """Of the gateway process of `antiphon serve` with the default deployment, when nobody talks to it."""
    async with running_server("--log-level", "warning") as server:
        await asyncio.sleep(2)  # what start-up leaves behind
        return await wakeups_s(server.pid, seconds)


async def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--short", action="store_true")
    plan = SHORT if options.parse_args().short else FULL
    cores = os.sched_getaffinity(0)
    with bare_hop() as bare:
        result = await measure(plan, bare)
    pin(cores, [os.getpid()])
    if plan.server:
        result["idle_wakeups_s"] = await server_wakeups_s(plan.idle_s)
    print(msgspec.json.encode(result).decode())


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main())
