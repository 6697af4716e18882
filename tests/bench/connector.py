"""Payloads from one process to another through shared memory, beside what that must cost at least.

    tests/run bench connector [--short]

Prints one JSON object as its last line. For each size, medians over interleaved rounds, in microseconds: `p50_us` is one way,
from before the producer puts a payload until the consumer's `await get()` has returned. The previous payload is let go of after
that, and its producer forgets it while the new one is on its way. `hop_us` is one way of a 64-byte message over an asyncio Unix
socket between the same processes, `memcpy_us` one copy of that size by numpy. `bound_us` is 1.5 × (hop + 1.5 memcpy), `ratio` is
p50 / bound: at most 1. `gb_s` is bytes / p50, `memcpy_share` is memcpy / p50: at least 0.5 for 16 MB. 4 KB travel inline.

`messages` of STREAM_BYTES are then sent as fast as they are taken; `rss_slope_mb` is by how much the resident memory of either
process, whichever is worse, grows meanwhile (a line through all but the first fifth).

Producer and consumer are pinned to a core each, and run on the loop that workers and gateways run on. Sources rotate over more
memory than the caches hold, and so do the copy's targets.
"""

import argparse
import asyncio
import os
import socket
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import numpy as np
import uvloop
from numpy.typing import NDArray

from bench.command import note
from bench.payload_taker import ANSWER, HOP_BYTES, STAMP, take
from engines.chunks import Chunk, ChunkTiming
from engines.connectors.contents import Key
from engines.connectors.process import SHARED_MEMORY, Connectors
from engines.messages import to_gateway, to_worker
from engines.messages.connection import Connection
from engines.messages.to_gateway import Emit
from engines.messages.to_worker import ToWorker
from engines.payloads import Array, Payload
from engines.worker.memory import resident_bytes

SIZES_BYTES = (4 << 10, 64 << 10, 1 << 20, 16 << 20)
SCOPE = "bench#0/request/1/stage"
ARENA_BYTES = 64 << 20
ROTATING_BYTES = 128 << 20
"""The L3 cache of the machines at hand holds 32 MB."""
STRIDE = 7919
"""From one buffer to the next, so that no prefetcher guesses it; prime, so that all have their turn."""
STREAM_BYTES = 16 << 10
STREAM_WINDOW = 32


class Plan(msgspec.Struct, frozen=True):
    rounds: int
    bytes_per_round: int
    most_per_round: int
    messages: int


FULL = Plan(rounds=11, bytes_per_round=256 << 20, most_per_round=200, messages=1_000_000)
SHORT = Plan(rounds=5, bytes_per_round=128 << 20, most_per_round=100, messages=20_000)


class Buffers:
    """Pieces of one size, in an order that caches and prefetchers do not like."""

    def __init__(self, size: int) -> None:
        whole = np.arange(ROTATING_BYTES // 8, dtype=np.int64).view(np.uint8)
        self._pieces = whole.reshape(-1, size)
        self._place = 0

    def next(self) -> NDArray[np.uint8]:
        self._place = (self._place + STRIDE) % len(self._pieces)
        return self._pieces[self._place]


class Unheard:
    """The consumer answers elsewhere."""

    def received(self, message: ToWorker) -> None:
        raise AssertionError(f"nobody was to say {message}")

    def lost(self, reason: Exception | None) -> None:
        assert reason is None, reason


class Producer:
    """`payloads` goes one way; on `hops` come the answers to both."""

    def __init__(
        self,
        connectors: Connectors,
        payloads: Connection[ToWorker],
        hops: tuple[asyncio.StreamReader, asyncio.StreamWriter],
    ) -> None:
        self._connectors = connectors
        self._connector = connectors.named(SHARED_MEMORY)
        self._payloads = payloads
        self._answers, self._hops = hops
        self._seq = 0

    async def payload_us(self, samples: NDArray[np.uint8]) -> float:
        payload = Payload(arrays={"samples": Array.of(samples)})
        began = time.monotonic_ns()
        self._send(payload)
        self._connectors.cleanup(SCOPE, before=self._seq - 1)
        there, first, last, _ = ANSWER.unpack(await self._answers.readexactly(ANSWER.size))
        assert (first, last) == (samples[0], samples[-1])
        return (there - began) / 1000

    async def hop_us(self) -> float:
        began = time.monotonic_ns()
        self._hops.write(bytes(HOP_BYTES))
        (there,) = STAMP.unpack(await self._answers.readexactly(STAMP.size))
        return (there - began) / 1000

    async def stream(self, count: int, buffers: Buffers) -> list[tuple[int, int]]:
        """Resident bytes of producer and consumer, a hundred times."""
        resident: list[tuple[int, int]] = []
        answered = self._seq
        for index in range(count):
            self._send(Payload(arrays={"samples": Array.of(buffers.next())}))
            if self._seq - answered == STREAM_WINDOW:
                *_, taker_bytes = ANSWER.unpack(await self._answers.readexactly(ANSWER.size))
                answered += 1
                self._connectors.cleanup(SCOPE, before=answered)
                if index % (count // 100) == 0:
                    resident.append((resident_bytes(), taker_bytes))
        await self._answers.readexactly(ANSWER.size * (self._seq - answered))
        return resident

    def _send(self, payload: Payload) -> None:
        content = self._connector.put(Key(SCOPE, self._seq), payload)
        chunk = Chunk("request", 1, 0, "stage", self._seq, "audio", content, 0.0, False, ChunkTiming(0.0, 0.0))
        self._payloads.send(Emit(chunk))
        self._seq += 1


@asynccontextmanager
async def producer(connectors: Connectors) -> AsyncGenerator[Producer, None]:
    """With a consumer on another core, which ends when its sockets do."""
    first, *_, last = sorted(os.sched_getaffinity(0)) * 2
    os.sched_setaffinity(0, {first})
    note(f"producer on core {first}, consumer on core {last}")
    payloads, payloads_there = socket.socketpair()
    hops, hops_there = socket.socketpair()
    fds = (payloads_there.fileno(), hops_there.fileno())
    command = (sys.executable, "-m", "bench.connector", "--take", *map(str, fds), str(last))
    process = await asyncio.create_subprocess_exec(*command, pass_fds=fds)
    payloads_there.close()
    hops_there.close()
    connection = Connection(to_worker.decoder, to_gateway.encoder, Unheard(), first_at_once=True)
    await asyncio.get_running_loop().create_connection(lambda: connection, sock=payloads)
    reader, writer = await asyncio.open_unix_connection(sock=hops)
    yield Producer(connectors, connection, (reader, writer))
    connection.close()
    writer.close()
    await process.wait()


def memcpy_us(target: NDArray[np.uint8], source: NDArray[np.uint8]) -> float:
    began = time.monotonic_ns()
    np.copyto(target, source)
    return (time.monotonic_ns() - began) / 1000


async def one_round(bench: Producer, count: int, sources: Buffers, targets: Buffers) -> tuple[float, float, float]:
    """Medians: one way, hop, memcpy."""
    one_way = [await bench.payload_us(sources.next()) for _ in range(count)]
    hops = [await bench.hop_us() for _ in range(count)]
    copies = [memcpy_us(targets.next(), sources.next()) for _ in range(count)]
    return statistics.median(one_way), statistics.median(hops), statistics.median(copies)


def figures(size: int, rounds: list[tuple[float, float, float]]) -> dict[str, float]:
    p50_us, hop_us, copy_us = (statistics.median(column) for column in zip(*rounds, strict=True))
    bound_us = 1.5 * (hop_us + 1.5 * copy_us)
    times = {"p50_us": p50_us, "memcpy_us": copy_us, "hop_us": hop_us, "bound_us": bound_us}
    shares = {"gb_s": size / p50_us / 1000, "ratio": p50_us / bound_us, "memcpy_share": copy_us / p50_us}
    return {name: round(value, 1) for name, value in times.items()} | {name: round(value, 3) for name, value in shares.items()}


def slope_mb(resident: list[tuple[int, int]]) -> float:
    """How much the line through them climbs from one end to the other."""
    settled = np.array(resident[len(resident) // 5 :], dtype=float)
    slopes, _ = np.polyfit(np.arange(len(settled)), settled, 1)
    return round(float(slopes.max()) * len(resident) / 2**20, 3)


async def measure(plan: Plan) -> dict[str, Any]:
    connectors = Connectors(ARENA_BYTES)
    rounds: dict[int, list[tuple[float, float, float]]] = defaultdict(list)
    buffers = {size: (Buffers(size), Buffers(size)) for size in SIZES_BYTES}
    async with producer(connectors) as bench:
        for _ in range(plan.rounds + 1):
            for size in SIZES_BYTES:
                count = min(plan.most_per_round, plan.bytes_per_round // size)
                rounds[size].append(await one_round(bench, count, *buffers[size]))
        result: dict[str, Any] = {"bytes": {str(size): figures(size, rounds[size][1:]) for size in SIZES_BYTES}}
        note(str(result))
        resident = await bench.stream(plan.messages, Buffers(STREAM_BYTES))
    assert not (fault := connectors.health()), fault
    connectors.close()
    return result | {"messages": plan.messages, "rss_slope_mb": slope_mb(resident)}


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--short", action="store_true")
    options.add_argument("--take", type=int, nargs=3, help=argparse.SUPPRESS)
    chosen = options.parse_args()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        if chosen.take:
            runner.run(take(*chosen.take))
        else:
            print(msgspec.json.encode(runner.run(measure(SHORT if chosen.short else FULL))).decode())


if __name__ == "__main__":
    main()
