"""Coroutines side by side that fail as one."""

import asyncio
from collections.abc import Coroutine


async def together(*coroutines: Coroutine[object, object, None]) -> None:
    """Run all to their end. The first failure stops the others and is raised as it is, not in a group."""
    try:
        async with asyncio.TaskGroup() as group:
            for coroutine in coroutines:
                group.create_task(coroutine)
    except ExceptionGroup as failures:
        first: Exception = failures.exceptions[0]
        raise first from None
