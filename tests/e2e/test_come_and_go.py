"""People who come and leave in the middle of something, over WebRTC and over the WebSocket: everything is back at its base."""

import os
import statistics
from collections.abc import AsyncGenerator
from pathlib import Path
from random import Random

import msgspec
import pytest
import pytest_asyncio

import recordings
from bench.conversation import Conversation
from bench.cpu_time import children
from bench.fast_server import fast_server
from bench.server import Server, until
from e2e.leaving import WAYS, come_and_go
from e2e.observing import active, value

pytestmark = pytest.mark.real_models

AT_ONCE = 5
PATIENCE_S = 1.0
CONNECT_S = 1.0
ROUND = 50
WARM_ROUNDS = 6
"""Memory grows with the first clients, and no more after them."""
MAY_GROW_MB = 6.0


@pytest_asyncio.fixture
async def brief() -> AsyncGenerator[Server]:
    """It waits for nobody long."""
    async with fast_server(sentences=12, patience_s=PATIENCE_S, connect_s=CONNECT_S) as server:
        yield server


class Holdings(msgspec.Struct, frozen=True):
    """Of the gateway and its processes. `descriptors`: besides those of shared memory. `arenas`: pieces of that, of which each
    process makes one when it first needs it."""

    processes: int
    threads: int
    descriptors: int
    arenas: int


def holdings(server: Server) -> Holdings:
    pids = [server.pid, *children(server.pid)]
    links = [_target(entry) for pid in pids for entry in Path(f"/proc/{pid}/fd").iterdir()]
    arenas = {line.split(maxsplit=5)[5] for pid in pids for line in _lines(pid, "maps") if "/memfd:" in line}
    return Holdings(
        processes=len(pids),
        threads=sum(len(list(Path(f"/proc/{pid}/task").iterdir())) for pid in pids),
        descriptors=sum(bool(link) and "/memfd:" not in link for link in links),
        arenas=len(arenas),
    )


async def settled(server: Server) -> None:
    """Until nobody is there any more, in no seat and in no engine."""

    async def empty() -> bool:
        taken = await value(server, "antiphon_calls_active") + await value(server, "antiphon_sessions_active")
        return taken + await active(server) == 0

    await until(empty)


async def is_back_at(server: Server, base: Holdings) -> None:
    async def is_back() -> bool:
        now = holdings(server)
        back = now.threads <= base.threads and now.descriptors <= base.descriptors
        return back and now.processes == base.processes and now.arenas <= now.processes

    try:
        await until(is_back, timeout_s=10)
    except TimeoutError:
        raise AssertionError(f"expected {base}, got {holdings(server)}") from None


async def a_spoken_turn(server: Server) -> None:
    """It opens what is opened once: every stage, and the shared memory between them."""
    async with Conversation(server.url) as talk:
        answering = talk.upcoming("response.output_audio.delta")
        await talk.append(recordings.spoken_commands()[0].pcm() + recordings.to_pcm(recordings.silence(1)))
        await answering


async def test_forty_leave_nothing(brief: Server) -> None:
    await a_spoken_turn(brief)
    await come_and_go(brief.url, len(WAYS), AT_ONCE, Random(1))
    await settled(brief)
    base = holdings(brief)
    await come_and_go(brief.url, 40, AT_ONCE, Random(2))
    await settled(brief)
    await is_back_at(brief, base)


@pytest.mark.full
@pytest.mark.timeout(900)
async def test_a_thousand_leave_nothing_and_no_memory(brief: Server) -> None:
    chance = Random(3)
    base: Holdings | None = None
    sizes_mb: list[float] = []
    for number in range(WARM_ROUNDS + 1000 // ROUND):
        await come_and_go(brief.url, ROUND, AT_ONCE, chance)
        await settled(brief)
        if number >= WARM_ROUNDS:
            base = base or holdings(brief)
            sizes_mb.append(brief.rss_mb())
    assert base is not None
    await is_back_at(brief, base)
    half = len(sizes_mb) // 2
    assert statistics.median(sizes_mb[half:]) <= statistics.median(sizes_mb[:half]) + MAY_GROW_MB, sizes_mb


def _lines(pid: int, file: str) -> list[str]:
    return Path(f"/proc/{pid}/{file}").read_text().splitlines()


def _target(link: Path) -> str:
    """Of one that may be closed at this moment."""
    try:
        return os.readlink(link)
    except FileNotFoundError:
        return ""
