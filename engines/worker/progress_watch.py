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
        self._silent_since_s = 0.0
        """While somebody waits; by the loop's clock."""
        self._timer: asyncio.TimerHandle | None = None

    @contextmanager
    def waiting(self) -> Generator[None]:
        """Around every wait for the model. An exception, such as being cancelled, is no sign of life."""
        self._begin()
        try:
            yield
            self._answered()
        finally:
            self._waiting -= 1

    async def each(self, answers: AsyncGenerator[T, None]) -> AsyncGenerator[T, None]:
        """`answers`, watched. Not while its reader is busy with one of them."""
        async with aclosing(answers):
            while True:
                self._begin()
                try:
                    answer = await anext(answers)
                    self._answered()
                except StopAsyncIteration:
                    return
                finally:
                    self._waiting -= 1
                yield answer

    def _begin(self) -> None:
        if not self._waiting:
            self._answered()
        self._waiting += 1
        if self._timer is None:
            self._arm()

    def _answered(self) -> None:
        self._silent_since_s = asyncio.get_running_loop().time()

    def _arm(self) -> None:
        self._timer = asyncio.get_running_loop().call_at(self._silent_since_s + self._limit_s, self._look)

    def _look(self) -> None:
        """The timer stays as it is while answers come, a hundred a second, and is set again only when it goes off."""
        self._timer = None
        if not self._waiting:
            return
        if asyncio.get_running_loop().time() < self._silent_since_s + self._limit_s:
            self._arm()
        else:
            self.hung.set()
