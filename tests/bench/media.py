"""What calls cost and how they take trouble: CPU, memory and punctuality, loss, a client that vanishes and comes back.

    tests/run bench media [--short]

Prints one JSON object as its last line. Times in milliseconds where the name says so. The server is a whole one with the real
voice activity; turns, words and voice are made up at once (fakes/fast_voice.py), so that the cores are there for the calls. The
clients keep to the last core. Lateness is what the kernel says about each packet's arrival, so the clients have no part in it.

`cpu_ms_per_frame`: of the gateway, for 20 ms of one call, with people and answers taking turns; `_aiortc`: of stock aiortc that
echoes, with its codec in the same process; `calls_per_core`: how many fill three quarters of a core. `_plain`: without real-time
priority. What loss does: bench/lossy.py.
"""

import asyncio
from typing import Any

import msgspec

from bench.call_load import Cost, cost_of, speech
from bench.comeback import comebacks
from bench.command import chosen, note, reported
from bench.fast_server import fast_server
from bench.lossy import hearing_through_loss
from fakes.stock_peer import stock_peer
from recordings import spoken_commands

FRAME_MS = 20
SHARE_OF_A_CORE = 0.75


class Plan(msgspec.Struct, frozen=True):
    """How much of each measurement; the short form only shows that everything still works. `crowds`: calls at once; the first
    is the one that the figures are of. A server is given `settle_s` before it is measured for `seconds`."""

    crowds: tuple[int, ...]
    settle_s: float
    seconds: float
    comebacks: int


FULL = Plan(crowds=(10, 20), settle_s=3.0, seconds=12.0, comebacks=8)
SHORT = Plan(crowds=(2,), settle_s=0.5, seconds=1.5, comebacks=1)


async def measure(plan: Plan) -> dict[str, Any]:
    if plan is SHORT:  # side by side: nothing is measured
        loss, rest = await asyncio.gather(hearing_through_loss(short=True), calls(plan))
    else:
        loss, rest = await hearing_through_loss(short=False), await calls(plan)
    note(f"loss {loss}")
    return {**loss, **rest}


async def calls(plan: Plan) -> dict[str, Any]:
    packets = speech(spoken_commands())
    async with fast_server(sentences=1) as server:
        crowds = [await cost_of(server, calls, plan.settle_s, plan.seconds, packets) for calls in plan.crowds]
        note(f"with real-time priority {crowds}")
        again = await comebacks(server, plan.comebacks)
        note(f"comebacks {again}")
    async with fast_server(sentences=1, realtime_priority=False) as server:
        plain = await cost_of(server, plan.crowds[0], plan.settle_s, plan.seconds, packets)
        note(f"without {plain}")
    async with stock_peer() as server:
        stock = await cost_of(server, plan.crowds[0], plan.settle_s, plan.seconds, packets)
        note(f"stock aiortc {stock}")
    return {**figures(crowds, plain, stock), **again.figures()}


def figures(crowds: list[Cost], plain: Cost, stock: Cost) -> dict[str, Any]:
    first = crowds[0]
    return {
        "cpu_ms_per_frame": first.cpu_ms_per_frame,
        "cpu_ms_per_frame_aiortc": stock.cpu_ms_per_frame,
        "calls_per_core": round(SHARE_OF_A_CORE * FRAME_MS / first.cpu_ms_per_frame, 1),
        "cpu_ms_per_frame_all": first.all_ms_per_frame,
        "lateness_p99_ms": first.lateness_p99_ms,
        "lateness_p99_ms_plain": plain.lateness_p99_ms,
        "lateness_p99_ms_aiortc": stock.lateness_p99_ms,
        "mb_per_call": first.mb_per_call,
        "by_calls": {str(cost.calls): msgspec.structs.asdict(cost) for cost in crowds},
    }


async def main() -> None:
    await reported(measure(chosen(__doc__, FULL, SHORT)))


if __name__ == "__main__":
    asyncio.run(main())
