"""The store hangs, is full, read-only, gone for longer than a lease: newcomers are told to come again, those who wait wait on,
those who talk are mute from the end of the lease on and talk again when the store is back."""

import asyncio
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec

from fakes.real_house import House, house, seated
from fakes.redis_server import RedisServer, running_redis
from fakes.session_stores import one_server
from sessions.admission.node import Leases
from sessions.store.interface import StoreDown

SEATS = 2
LEASES = Leases(lease_s=2.0, return_s=20.0, grace_s=40.0)
"""A busy machine takes no seat away."""
FILLING = "filling"


async def tell(server: RedisServer, *command: str | bytes) -> None:
    wire = one_server(("127.0.0.1", server.port))
    await wire.ask(*command)
    await wire.close()


class Trouble(msgspec.Struct, frozen=True):
    begin: Callable[[RedisServer], Awaitable[None]]
    end: Callable[[RedisServer], Awaitable[None]]
    leases_end: bool = True
    """As long as it lasts no lease can be renewed."""


async def hang(server: RedisServer) -> None:
    server.signal(signal.SIGSTOP)


async def go_on(server: RedisServer) -> None:
    server.signal(signal.SIGCONT)


async def become_replica(server: RedisServer) -> None:
    await tell(server, "REPLICAOF", "127.0.0.1", "1")


async def become_primary(server: RedisServer) -> None:
    await tell(server, "REPLICAOF", "NO", "ONE")


async def die(server: RedisServer) -> None:
    await tell(server, "SAVE")
    await server.kill()


async def rise(server: RedisServer) -> None:
    await server.start()


async def fill_up(server: RedisServer) -> None:
    await tell(server, "SET", FILLING, bytes(8_000_000))
    await tell(server, "CONFIG", "SET", "maxmemory", "6mb")


async def empty_out(server: RedisServer) -> None:
    await tell(server, "DEL", FILLING)


async def refused(here: House, name: str) -> StoreDown:
    person = here.comes(name, here.nodes[0])
    await here.until(lambda: person.is_gone)
    assert isinstance(person.refused, StoreDown)
    return person.refused


async def lives_through(folder: Path, trouble: Trouble) -> None:
    async with running_redis(folder) as server, house(server.url, nodes=2, seats=SEATS, leases=LEASES, settle_s=1.0) as here:
        people = [here.comes(f"talks{number}", node) for number, node in enumerate(here.nodes)]
        await here.until(lambda: seated(people) == SEATS)
        waits = here.comes("waits", here.nodes[0])
        await here.waits(1)
        await trouble.begin(server)
        try:
            if trouble.leases_end:
                await here.mute()
            assert (await refused(here, "in-vain")).retry_after_s > 0
            assert not waits.is_gone or trouble.leases_end
            assert not any(person.is_gone for person in people)
        finally:
            await trouble.end(server)
        await here.until(lambda: here.talking() == ["talks0", "talks1"])
        newcomer = here.comes("comes", here.nodes[1])
        people[0].leaves.set()
        await here.until(lambda: waits.is_seated or newcomer.is_seated)
        assert here.faults == []
        assert here.most_talking == SEATS


async def test_the_store_is_in_trouble_and_out_of_it(tmp_path: Path) -> None:
    """All side by side: most of the time is that of leases."""
    troubles = {
        "hangs": Trouble(hang, go_on),
        "is gone": Trouble(die, rise),
        "takes no writes": Trouble(become_replica, become_primary),
        "is full": Trouble(fill_up, empty_out, leases_end=False),
    }
    async with asyncio.TaskGroup() as group:
        for name, trouble in troubles.items():
            group.create_task(lives_through(tmp_path / name, trouble), name=name)
