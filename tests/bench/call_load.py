"""What so many calls at once cost a server, and how punctual its packets are meanwhile."""

import asyncio
import os
import random
import time
from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import aiohttp
import msgspec
import numpy as np
from numpy.typing import NDArray

from bench import wire
from bench.cpu_time import children, cpu_s, pss_mb
from bench.lean_call import SLOT_S, SLOT_UNITS, Arrival, LeanCall
from bench.server import Server
from browser import microphone
from recordings import Utterance

QUIET_S = 3.5
"""Between two utterances of a speaker, and filled by the answer to the one before."""
MS_PER_S = 1000
Figures = NDArray[np.float64]


class Cost(msgspec.Struct, frozen=True):
    """Of the process that answers the calls, of its media worker and of all processes of the server: milliseconds of CPU for
    20 ms of one call; megabytes for one call. Lateness in milliseconds. `skipped`: slots in which nothing was sent."""

    calls: int
    cpu_ms_per_frame: float
    media_ms_per_frame: float
    all_ms_per_frame: float
    mb_per_call: float
    lateness_p50_ms: float
    lateness_p99_ms: float
    lateness_max_ms: float
    packets: int
    skipped: int


def speech(asked: Sequence[Utterance]) -> list[bytes]:
    """Opus packets of people speaking, each utterance with time for an answer after it."""
    return wire.opus(microphone.script((utterance, QUIET_S) for utterance in asked))


async def cost_of(server: Server, calls: int, settle_s: float, seconds: float, packets: Sequence[bytes]) -> Cost:
    parts = _parts(server.pid)
    async with _talking(server, 1, packets):
        await asyncio.sleep(settle_s)  # what the first call loads stays for good
    before_mb = parts.media_mb()
    async with _talking(server, calls, packets) as lines:
        await asyncio.sleep(settle_s)
        for line in lines:
            line.arrivals.clear()
        before_s, began_at = parts.cpu_s(), time.monotonic()
        await asyncio.sleep(seconds)
        used_s = parts.cpu_s() - before_s
        frames = calls * (time.monotonic() - began_at) / SLOT_S
        heard = [list(line.arrivals) for line in lines]
        grown_mb = parts.media_mb() - before_mb
    return _cost(heard, grown_mb / calls, used_s * MS_PER_S / frames)


def _cost(heard: Sequence[Sequence[Arrival]], mb_per_call: float, ms_per_frame: Figures) -> Cost:
    """`ms_per_frame`: of the gateway, the codec, all."""
    late = np.concatenate([lateness_ms(arrivals) for arrivals in heard])
    gateway, codec, everybody = (round(float(ms), 3) for ms in ms_per_frame)
    p50, p99, most = (round(float(ms), 2) for ms in np.percentile(late, (50, 99, 100)))
    return Cost(
        calls=len(heard),
        cpu_ms_per_frame=gateway,
        media_ms_per_frame=codec,
        all_ms_per_frame=everybody,
        mb_per_call=round(mb_per_call, 2),
        lateness_p50_ms=p50,
        lateness_p99_ms=p99,
        lateness_max_ms=most,
        packets=len(late),
        skipped=sum(map(skipped, heard)),
    )


def lateness_ms(arrivals: Sequence[Arrival]) -> Figures:
    """Of each packet behind the grid of 20 ms slots that the most punctual one of its call defines."""
    at_s = np.array([arrival.at_s for arrival in arrivals])
    due_s = np.unwrap(np.array([arrival.timestamp for arrival in arrivals], float), period=2**32) / SLOT_UNITS * SLOT_S
    behind = at_s - due_s
    return (behind - behind.min()) * MS_PER_S


def skipped(arrivals: Sequence[Arrival]) -> int:
    """Slots between the first packet and the last in which none came."""
    return ((arrivals[-1].timestamp - arrivals[0].timestamp) % 2**32) // SLOT_UNITS + 1 - len(arrivals)


@asynccontextmanager
async def _talking(server: Server, calls: int, packets: Sequence[bytes]) -> AsyncGenerator[list[LeanCall]]:
    """So many calls, each at another place of the speech and of the slot; hung up afterwards."""
    draw = random.Random(calls)
    lines = [LeanCall(packets, draw.randrange(len(packets))) for _ in range(calls)]
    locations: list[str] = []
    async with aiohttp.ClientSession() as http:
        try:
            with _on_the_last_core():
                for line in lines:
                    locations.append(await line.connect(http, server.url))
                    line.start(draw.uniform(0, SLOT_S))
                yield lines
        finally:
            for line in lines:
                await line.close()
            for location in locations:
                async with http.delete(server.url + location):
                    pass


class _Parts(msgspec.Struct, frozen=True):
    """`codec`: the media worker for calls, where there is one."""

    gateway: int
    codec: int | None
    workers: list[int]

    def cpu_s(self) -> Figures:
        """Of the gateway, the codec, all."""
        gateway, codec = cpu_s(self.gateway), 0.0 if self.codec is None else cpu_s(self.codec)
        return np.array([gateway, codec, gateway + sum(map(cpu_s, self.workers))])

    def media_mb(self) -> float:
        return pss_mb(self.gateway) + (0.0 if self.codec is None else pss_mb(self.codec))


def _parts(gateway: int) -> _Parts:
    workers = children(gateway)
    titles = {Path(f"/proc/{pid}/cmdline").read_text().strip("\0 "): pid for pid in workers}
    return _Parts(gateway, titles.get("antiphon calls"), workers)


@contextmanager
def _on_the_last_core() -> Generator[None]:
    """The clients leave the server the rest. Not while a server is started: it would inherit this."""
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(cores)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, cores)
