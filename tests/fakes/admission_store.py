"""Admission in memory and in a real Redis, each with a clock that the test moves."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from fakes.store_time import CLOCK_LUA, StoreTime
from sessions.store.address import connected
from sessions.store.connection import StoreConnection
from sessions.store.interface import AdmissionStore
from sessions.store.keys import ADMISSION
from sessions.store.library import library
from sessions.store.memory_admission import MemoryAdmission
from sessions.store.redis_admission import RedisAdmission
from sessions.store.url import parse


class TimedAdmission:
    def __init__(self, store: AdmissionStore, time: StoreTime, connection: StoreConnection | None) -> None:
        self.store = store
        self._time = time
        self._connection = connection

    async def pass_time(self, seconds: float) -> None:
        self._time.step(seconds)
        if self._connection is not None:
            await self._connection.call("test_clock", (ADMISSION,), (self._time.us,))


def in_memory(settle_s: float = 0.0) -> TimedAdmission:
    time = StoreTime()
    return TimedAdmission(MemoryAdmission(time.now_us, time.us, settle_s), time, None)


@asynccontextmanager
async def in_redis(url: str, settle_s: float = 0.0) -> AsyncGenerator[TimedAdmission]:
    """A new store: call it once before time passes."""
    async with connected(parse(url), library(CLOCK_LUA)) as connection:
        timed = TimedAdmission(RedisAdmission(connection, settle_s), StoreTime(), connection)
        await timed.pass_time(0)
        yield timed
