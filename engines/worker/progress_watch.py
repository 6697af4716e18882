"""Notices that a model which is asked for something gives nothing any more."""

import asyncio
from collections.abc import AsyncGenerator, Generator
from contextlib import aclosing, contextmanager
from typing import TypeVar

T = TypeVar("T")


class ProgressWatch:
    """`hung` is set once nothing has come for `limit_s` although somebody waited all that time.

    One answer is enough to show that the model lives, whoever waited for it.
    """

    def __init__(self, limit_s: float) -> None:
        self.hung = asyncio.Event()
        self._limit_s = limit_s
        self._waiting = 0
        self._timer: asyncio.TimerHandle | None = None

    @contextmanager
    def waiting(self) -> Generator[None]:
        """Around every wait for the model. An exception, such as being cancelled, is no sign of life."""
        self._waiting += 1
        if self._timer is None:
            self._arm()
        try:
            yield
            self._arm()
        finally:
            self._waiting -= 1
            if not self._waiting:
                self._disarm()

    async def each(self, answers: AsyncGenerator[T, None]) -> AsyncGenerator[T, None]:
        """`answers`, watched. Not while its reader is busy with one of them."""
        async with aclosing(answers):
            while True:
                with self.waiting():
                    try:
                        answer = await anext(answers)
                    except StopAsyncIteration:
                        return
                yield answer

    def _arm(self) -> None:
        self._disarm()
        self._timer = asyncio.get_running_loop().call_later(self._limit_s, self.hung.set)

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
