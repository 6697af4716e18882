"""A session that has to go is put down where it hurts least: between two turns."""

from collections.abc import Awaitable, Callable
from typing import Protocol

LOOK_S = 0.1
"""What a client plays for itself ends by the clock, and rings no bell."""


class PutDown(Protocol):
    """A running session."""

    @property
    def is_between_turns(self) -> bool: ...

    async def put_down(self) -> None: ...


async def put_down_between_turns(
    running: PutDown, limit_s: float, clock: Callable[[], float], sleep: Callable[[float], Awaitable[None]]
) -> None:
    """Or in the middle of one, after `limit_s`. Its client hears of it a moment before. `clock` is monotonic, in seconds."""
    until = clock() + limit_s
    await sleep(LOOK_S)
    while not running.is_between_turns and clock() < until:
        await sleep(LOOK_S)
    await running.put_down()
