"""The store loses its data, or gets older data back, in the middle of it all: those who talk talk on, nobody is let in beyond
what there is, and nobody new before every node could say whom it has."""

import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from fakes.real_house import House, Person, house
from fakes.redis_server import RedisServer, running_redis
from fakes.session_stores import one_server

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


async def restarted_with_older_data(server: RedisServer) -> None:
    """Those of `saved`."""
    await server.kill()
    await server.start()


async def nothing(server: RedisServer) -> None:
    """Is saved."""


async def saved(server: RedisServer) -> None:
    await tell(server, "SAVE")


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


def seated(people: list[Person]) -> int:
    return sum(person.is_seated for person in people)


@pytest.mark.parametrize(
    ("before", "loses"),
    [(nothing, flushed), (nothing, restarted_without_data), (saved, restarted_with_older_data)],
    ids=["flushed", "without data", "older data"],
)
async def test_the_data_is_lost_in_the_middle(tmp_path: Path, before: Act, loses: Act) -> None:
    async with with_one_seat_left(tmp_path, before) as (server, here, people):
        await loses(server)
        lost_at = time.monotonic()
        newcomers = [here.comes(f"new{number}", node) for number, node in enumerate(here.nodes)]
        await here.until(lambda: seated(newcomers) == 1, here.settle_s + 10)
        assert time.monotonic() - lost_at > 0.9 * here.settle_s
        assert {person.session_id for person in people} < set(here.talking())
        people[0].leaves.set()
        await here.until(lambda: seated(newcomers) == 2)
        assert here.faults == []
        assert here.most_talking == SEATS
        assert (await here.nodes[0].store.census()).active == SEATS


async def test_a_node_that_was_cut_off_meanwhile_does_not_get_back_what_was_given_away(tmp_path: Path) -> None:
    """Its own lease was over when the others could be let in: so it had been mute, and stays so."""
    async with running_redis(tmp_path) as server, house(server.url, nodes=2, seats=1) as here:
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
