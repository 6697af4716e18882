"""Coroutines side by side, until the first is over."""

import asyncio
from collections.abc import Coroutine


async def first_of(*ends: Coroutine[object, object, object]) -> list[BaseException]:
    """The others are cancelled, and have ended when this returns. Returns what they raised."""
    tasks = {asyncio.create_task(end) for end in ends}
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
    return [error for task in tasks if not task.cancelled() and (error := task.exception()) is not None]
