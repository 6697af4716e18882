"""Grants the slots of one stage, and keeps those who wait for one."""

import asyncio

import msgspec

from engines.messages.to_gateway import ErrorKind, StageReport
from engines.worker.engine import Engine
from engines.worker.stage_request import StageRequest
from engines.worker.waiting import WaitingLine

LONGEST_WAIT_S = 600.0
"""Whatever a gateway asks for."""


class Refused(Exception):
    """The stage does not open the request."""

    def __init__(self, kind: ErrorKind, message: str) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message


class Slots:
    """Between the gateways and the engine. Who waits may be pushed into, aborted and failed like anybody else."""

    def __init__(self, stage: str, slots: int, engine: Engine) -> None:
        self._taken = f"stage {stage!r}: all {slots} slots are taken"
        self._engine = engine
        self._line: WaitingLine[StageRequest] = WaitingLine(slots)
        self._timers: dict[StageRequest, asyncio.TimerHandle] = {}
        """Of everybody in the line."""
        engine.slot_freed = self._admit

    def enter(self, request: StageRequest) -> None:
        """Now, or when a slot is free. Raises Refused."""
        if self._engine.free_slots > 0:
            self._engine.submit(request)
            return
        submit = request.submit
        if not submit.wait_ms > 0:  # nor when it is no number
            raise Refused(ErrorKind.OVERLOADED, self._taken)
        if self._line.is_full:
            raise Refused(ErrorKind.OVERLOADED, f"{self._taken}, and {len(self._line)} requests wait for one already")
        self._line.join(request, request.gateway, submit.service_class)
        wait_s = min(submit.wait_ms / 1000, LONGEST_WAIT_S)
        self._timers[request] = asyncio.get_running_loop().call_later(wait_s, self._time_is_up, request)

    def changed(self, request: StageRequest) -> None:
        self._engine.changed(request)

    def abort(self, request: StageRequest) -> None:
        if self._take_out(request):
            request.end()
            request.closed.set()
        else:
            self._engine.abort(request)

    def fail(self, request: StageRequest, kind: ErrorKind, message: str) -> None:
        if self._take_out(request):
            request.fail(kind, message)
            request.closed.set()
        else:
            self._engine.fail(request, kind, message)

    def report(self) -> StageReport:
        report = self._engine.report()
        return msgspec.structs.replace(report, queued=report.queued + len(self._line))

    def close(self, reason: str) -> None:
        """The engine has died: nobody gets a slot any more."""
        for request in list(self._timers):
            self.fail(request, ErrorKind.ENGINE, reason)

    def _admit(self) -> None:
        while self._engine.free_slots > 0 and (request := self._line.next()) is not None:
            self._timers.pop(request).cancel()
            self._engine.submit(request)

    def _time_is_up(self, request: StageRequest) -> None:
        self.fail(request, ErrorKind.OVERLOADED, f"{self._taken}, and none became free within {request.submit.wait_ms:g} ms")

    def _take_out(self, request: StageRequest) -> bool:
        """Of the line; whether it was there."""
        timer = self._timers.pop(request, None)
        if timer is None:
            return False
        timer.cancel()
        self._line.leave(request, request.gateway, request.submit.service_class)
        return True
