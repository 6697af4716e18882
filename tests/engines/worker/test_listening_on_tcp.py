"""A worker on a TCP port: how many gateways it lets in."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, closing, suppress

import pytest

from engines.connectors.between_hosts import BetweenHosts
from engines.connectors.process import Connectors
from engines.graph.worker_link import WorkerLink
from engines.network.addresses import TcpAddress
from engines.network.door import MOST_GUESTS
from engines.network.handshake import DoorFull, Purpose, dial
from engines.network.raw_connection import HungUp
from engines.site import Carrier
from engines.worker.listening import listener
from engines.worker.server import Worker
from engines.worker.spec import WorkerSpec
from fakes.worker_bench import ARENA_BYTES, PIPELINE

MOST = 2


@asynccontextmanager
async def worker() -> AsyncGenerator[TcpAddress]:
    """Without any stage."""
    spec = WorkerSpec("bench", "test", "", (), listen="tcp://127.0.0.1:0", is_supervised=False)
    with closing(listener(spec)) as listening:
        place = TcpAddress(*listening.getsockname())
        hosts = BetweenHosts(Carrier.TCP, place, b"", ARENA_BYTES)
        connectors = Connectors(ARENA_BYTES, hosts.by_name)
        running = asyncio.create_task(Worker(spec, PIPELINE, connectors).run(listening, hosts))
        try:
            yield place
        finally:
            running.cancel()
            with suppress(asyncio.CancelledError):
                await running
            connectors.close()


async def linked(place: TcpAddress) -> WorkerLink:
    return await WorkerLink.over((await dial(place, b"", Purpose.CONTROL)).detached(), "gateway")


async def linked_soon(place: TcpAddress) -> WorkerLink:
    """A worker notices at once that a gateway has gone, but not before it is told."""
    while True:
        with suppress(DoorFull):
            return await linked(place)


@pytest.fixture(autouse=True)
def most(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(MOST_GUESTS, Purpose.CONTROL, MOST)


async def test_more_gateways_than_there_is_room_for_are_refused_until_one_leaves() -> None:
    async with worker() as place:
        first, *others = [await linked(place) for _ in range(MOST)]
        with pytest.raises(DoorFull):
            await linked(place)
        (await dial(place, b"", Purpose.PAYLOADS)).close()
        first.close()
        for link in (await linked_soon(place), *others):
            assert link.worker == "bench"
            link.close()


async def test_who_never_greets_does_not_keep_a_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engines.worker.namespace.HELLO_LIMIT_S", 0.1)
    async with worker() as place:
        silent = [await dial(place, b"", Purpose.CONTROL) for _ in range(MOST)]
        with pytest.raises(DoorFull):
            await linked(place)
        (await linked_soon(place)).close()
        for stranger in silent:
            with pytest.raises(HungUp):
                await stranger.read(1)
            stranger.close()
