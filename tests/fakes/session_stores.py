"""Session stores with a time that tests control: in memory, and in a real Redis, also a Cluster or a Sentinel set."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager

import msgspec
from redis.asyncio.connection import ConnectionPool

from fakes.store_time import CLOCK_LUA, StoreTime
from sessions.store.address import connected
from sessions.store.connection import StoreConnection
from sessions.store.interface import KeyStore, SessionStore
from sessions.store.library import library
from sessions.store.memory_sessions import MemorySessions
from sessions.store.redis_sessions import RedisSessions
from sessions.store.redis_shelves import RedisShelves
from sessions.store.servers import Place
from sessions.store.url import parse
from sessions.store.wire import Wire

INCARNATION = 7


class Stores(msgspec.Struct, frozen=True):
    sessions: SessionStore
    keys: KeyStore
    pass_s: Callable[[float], Awaitable[None]]
    """So much time passes."""
    connection: StoreConnection | None = None
    """Of a store in Redis."""


def one_server(place: Place) -> Wire:
    """For what only a test asks of it."""
    return Wire(ConnectionPool(host=place[0], port=place[1], protocol=2))


def in_memory() -> Stores:
    time = StoreTime()
    store = MemorySessions(time.now_us, INCARNATION)

    async def pass_s(seconds: float) -> None:
        time.step(seconds)

    return Stores(store, store, pass_s)


@asynccontextmanager
async def in_redis(url: str, *primaries: Place) -> AsyncGenerator[Stores]:
    """`primaries` have the time that is controlled, where `url` is not that of the only one."""
    time, functions = StoreTime(), library(CLOCK_LUA)
    places = primaries or parse(url).places
    async with connected(parse(url), functions) as connection:

        async def pass_s(seconds: float) -> None:
            time.step(seconds)
            for place in places:
                wire = one_server(place)
                await wire.ask("FCALL", functions.function("test_clock"), 0, time.us)
                await wire.close()

        async def incarnation() -> int:
            return INCARNATION

        await pass_s(0)
        yield Stores(RedisSessions(connection, incarnation), RedisShelves(connection), pass_s, connection)
