"""The store loses its data, or gets older data back, in the middle of it all: those who talk talk on, nobody is let in beyond
what there is, and nobody new before every node could say whom it has."""

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from fakes.real_house import House, Person, house, seated
from fakes.redis_server import RedisServer, running_redis
from fakes.session_stores import one_server
from sessions.admission.node import Leases

SEATS = 4


async def tell(server: RedisServer, *command: str) -> None:
    wire = one_server(("127.0.0.1", server.port))
    await wire.ask(*command)
    await wire.close()


async def flushed(server: RedisServer) -> None:
    await tell(server, "FLUSHALL")


async def restarted_without_data(server: RedisServer) -> None:
    await server.kill()
    for file in server.folder.glob("*.rdb"):
        file.unlink()
    await server.start()


async def restarted(server: RedisServer) -> None:
    """With what it had saved."""
    await server.kill()
    files = server.folder / "appendonlydir"
    await server.start(*(("--appendonly", "yes") if files.exists() else ()))


async def nothing(server: RedisServer) -> None:
    """Is saved."""


async def saved(server: RedisServer) -> None:
    await tell(server, "SAVE")


async def appending(server: RedisServer) -> None:
    """What is written is kept, but for the last second."""
    await tell(server, "CONFIG", "SET", "appendonly", "yes")


Act = Callable[[RedisServer], Awaitable[None]]


@asynccontextmanager
async def with_one_seat_left(folder: Path, before: Act) -> AsyncGenerator[tuple[RedisServer, House, list[Person]]]:
    """`before` happens when only one has come."""
    async with running_redis(folder) as server, house(server.url, nodes=3, seats=SEATS) as here:
        people = [here.comes("early", here.nodes[0])]
        await here.until(lambda: seated(people) == 1)
        await before(server)
        people += [here.comes(f"late{number}", node) for number, node in enumerate(here.nodes[1:])]
        await here.until(lambda: seated(people) == 3)
        yield server, here, people


async def lives_through(folder: Path, before: Act, loses: Act) -> None:
    async with with_one_seat_left(folder, before) as (server, here, people):
        await loses(server)
        lost_at = time.monotonic()
        newcomers = [here.comes(f"new{number}", node) for number, node in enumerate(here.nodes)]
        await here.until(lambda: seated(newcomers) == 1, here.settle_s + 10)
        assert time.monotonic() - lost_at > 0.9 * here.settle_s
        assert {person.session_id for person in people} < set(here.talking())
        people[0].leaves.set()
        await here.until(lambda: seated(newcomers) == 2)
        assert here.faults == []
        assert (await here.nodes[0].store.census()).active == SEATS


async def test_the_data_is_lost_in_the_middle(tmp_path: Path) -> None:
    """All side by side: most of the time is that of leases."""
    async with asyncio.TaskGroup() as group:
        group.create_task(lives_through(tmp_path / "flushed", nothing, flushed), name="flushed")
        group.create_task(lives_through(tmp_path / "without", nothing, restarted_without_data), name="without data")
        group.create_task(lives_through(tmp_path / "older", saved, restarted), name="older data")
        group.create_task(lives_through(tmp_path / "aof", appending, restarted), name="append-only file")


async def test_a_node_that_was_cut_off_meanwhile_does_not_get_back_what_was_given_away(tmp_path: Path) -> None:
    """Its own lease was over when the others could be let in: so it had been mute, and stays so."""
    leases = Leases(lease_s=1.5, return_s=0.5, grace_s=1.0)
    async with running_redis(tmp_path) as server, house(server.url, nodes=2, seats=1, leases=leases, settle_s=1.5) as here:
        cut_off, other = here.nodes
        people = [here.comes("cut-off", cut_off)]
        await here.until(lambda: seated(people) == 1)
        cut_off.line.down = True
        await flushed(server)
        newcomers = [here.comes("newcomer", other)]
        await here.until(lambda: seated(newcomers) == 1, here.settle_s + 10)
        cut_off.line.down = False
        await here.until(lambda: people[0].is_gone)
        assert here.talking() == ["newcomer"]
        assert here.faults == []
