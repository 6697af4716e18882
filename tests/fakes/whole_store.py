"""Admission and sessions together, in memory or in a real Redis, each with a clock that the test moves."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from fakes.store_time import CLOCK_LUA, StoreTime
from sessions.store.address import connected
from sessions.store.connection import StoreConnection
from sessions.store.interface import Store
from sessions.store.keys import ADMISSION
from sessions.store.library import library
from sessions.store.memory import MemoryStore
from sessions.store.redis import RedisStore
from sessions.store.url import parse


class TimedStore:
    def __init__(self, store: Store, time: StoreTime, connection: StoreConnection | None) -> None:
        self.store = store
        self._time = time
        self._connection = connection

    async def pass_s(self, seconds: float) -> None:
        """Others ask the store for this and that meanwhile: what is due at it happens at the next call."""
        for _ in range(4):
            self._time.step(seconds / 4)
            if self._connection is not None:
                await self._connection.call("test_clock", (ADMISSION,), (self._time.us,))
            await self.store.census()


def in_memory() -> TimedStore:
    time = StoreTime()
    return TimedStore(MemoryStore(time.now_us), time, None)


@asynccontextmanager
async def in_redis(url: str) -> AsyncGenerator[TimedStore]:
    async with connected(parse(url), library(CLOCK_LUA)) as connection:
        timed = TimedStore(RedisStore(connection, settle_s=0.0), StoreTime(), connection)
        await timed.pass_s(0)
        yield timed
