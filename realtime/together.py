"""Coroutines side by side that fail as one."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Coroutine
from typing import TypeVar

T = TypeVar("T")


async def together(*coroutines: Coroutine[object, object, None]) -> None:
    """Run all to their end. The first failure stops the others and is raised as it is, not in a group."""
    try:
        async with asyncio.TaskGroup() as group:
            for coroutine in coroutines:
                group.create_task(coroutine)
    except ExceptionGroup as failures:
        first: Exception = failures.exceptions[0]
        raise first from None


async def unless(work: Coroutine[object, object, T], *ends: Coroutine[object, object, None]) -> T:
    """What `work` returns, unless one of `ends` raises before: then that, and the work is cancelled."""
    try:
        async with asyncio.TaskGroup() as group:
            waiting = [group.create_task(end) for end in ends]
            working = group.create_task(work)
            done = await working
            for end in waiting:
                end.cancel()
        return done
    except ExceptionGroup as failures:
        first: Exception = failures.exceptions[0]
        raise first from None


@contextlib.asynccontextmanager
async def beside(work: Coroutine[None, None, None]) -> AsyncGenerator[None]:
    """`work` goes on while the block runs; when it fails, so does the block."""
    async with asyncio.TaskGroup() as group:
        task = group.create_task(work)
        try:
            yield
        finally:
            task.cancel()
