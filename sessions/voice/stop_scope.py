"""Ending a block of code from outside while its task goes on."""

import asyncio
from types import TracebackType

from sessions.voice.events import StatusReason


class StopScope:
    """`with scope:` runs until its end or until another task calls `stop`; the task's own cancellation passes through.

    The same mechanism as `asyncio.timeout`, with a caller in place of a clock.
    """

    def __init__(self) -> None:
        self.reason: StatusReason = ""
        """Why it was stopped, "" when it was not."""
        self._task: asyncio.Task[object] | None = None
        self._cancelling = 0

    def stop(self, reason: StatusReason) -> None:
        """The first reason stays. Takes effect at the block's present `await`; before the block only the reason is set."""
        if self.reason:
            return
        self.reason = reason
        if self._task is not None:
            self._task.cancel()

    def __enter__(self) -> "StopScope":
        self._task = asyncio.current_task()
        self._cancelling = self._task.cancelling() if self._task is not None else 0
        return self

    def __exit__(self, kind: type[BaseException] | None, raised: BaseException | None, trace: TracebackType | None) -> bool:
        task, self._task = self._task, None
        if task is None or kind is not asyncio.CancelledError or not self.reason:
            return False
        return task.uncancel() <= self._cancelling
