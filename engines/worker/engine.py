"""What the worker knows of an engine, whatever its execution type."""

from collections.abc import Callable
from typing import Protocol

from engines.messages.to_gateway import ErrorKind, StageReport
from engines.worker.stage_request import StageRequest


class Engine(Protocol):
    slot_freed: Callable[[], None]
    """The engine calls this whenever a slot has become free."""

    async def run(self) -> None:
        """The engine's owner task: works until cancelled. Raises a group of ModelDied when it can serve no more, after it has
        told every open request."""
        ...

    @property
    def free_slots(self) -> int:
        """None once the engine ends."""
        ...

    def submit(self, request: StageRequest) -> None:
        """Open it; the caller has checked that a slot is free."""
        ...

    def changed(self, request: StageRequest) -> None:
        """It has new input or new credit. One that the engine does not know is ignored."""
        ...

    def abort(self, request: StageRequest) -> None:
        """Silence it now, free what it holds, then set `request.closed`. Idempotent."""
        ...

    def fail(self, request: StageRequest, kind: ErrorKind, message: str) -> None:
        """Free what it holds, then say Failed."""
        ...

    def report(self) -> StageReport: ...

    def shutdown(self) -> None:
        """Release the model; nothing runs afterwards. May take seconds."""
        ...
