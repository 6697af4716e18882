"""Stores of jobs with a time that tests control: in memory, and in a real Redis."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import NamedTuple

from fakes.store_time import CLOCK_LUA, StoreTime
from sessions.store.address import connected
from sessions.store.interface import JobStore
from sessions.store.keys import JOBS
from sessions.store.library import library
from sessions.store.memory_jobs import MemoryJobs
from sessions.store.redis_jobs import RedisJobs
from sessions.store.url import parse


class TimedJobs(NamedTuple):
    store: JobStore
    pass_s: Callable[[float], Awaitable[None]]
    """So much time passes."""


def jobs_in_memory() -> TimedJobs:
    time = StoreTime()

    async def pass_s(seconds: float) -> None:
        time.step(seconds)

    return TimedJobs(MemoryJobs(time.now_us), pass_s)


@asynccontextmanager
async def jobs_in_redis(url: str) -> AsyncGenerator[TimedJobs]:
    time = StoreTime()
    async with connected(parse(url), library(CLOCK_LUA)) as connection:

        async def pass_s(seconds: float) -> None:
            time.step(seconds)
            await connection.call("test_clock", (JOBS,), (time.us,))

        await pass_s(0)
        yield TimedJobs(RedisJobs(connection), pass_s)
