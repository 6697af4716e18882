"""Work on files, beside the loop."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


async def to_its_end(work: Callable[[], T]) -> T:
    """In a thread. Whoever is cancelled meanwhile waits for it, however it ends: nothing goes on at a file that is given up."""
    working = asyncio.ensure_future(asyncio.to_thread(work))
    try:
        return await asyncio.shield(working)
    except asyncio.CancelledError:
        await asyncio.gather(working, return_exceptions=True)
        raise
