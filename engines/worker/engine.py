"""What the worker knows of an engine, whatever its execution type."""

from typing import Protocol

from engines.messages.to_gateway import ErrorKind, StageReport
from engines.worker.stage_request import StageRequest


class Engine(Protocol):
    async def run(self) -> None:
        """The engine's owner task: works until cancelled. Raises when the engine can serve no more."""
        ...

    @property
    def free_slots(self) -> int: ...

    def submit(self, request: StageRequest) -> None:
        """Open it; the caller has checked that a slot is free."""
        ...

    def changed(self, request: StageRequest) -> None:
        """It has new input or new credit."""
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
