"""The GENERATION engine: continuous batching of tensor-in, tensor-out models, one step at a time in a thread of its own."""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum, auto
from typing import ParamSpec, TypeVar

from engines.chunks import ChunkTiming
from engines.logs import about
from engines.messages.to_gateway import ErrorKind, StageReport
from engines.models import GenerationModel, InvalidInput, Produced
from engines.models.text import ModelDied
from engines.payloads import Payload
from engines.worker.batching import Ready, choose
from engines.worker.counters import Counters
from engines.worker.foreign import attempt, describe
from engines.worker.inbox import Input
from engines.worker.model_calls import flush_and_close, run_batch
from engines.worker.progress_watch import ProgressWatch
from engines.worker.spec import DEFAULT_HANG_LIMIT_S, BatchSpec
from engines.worker.stage_request import StageRequest

log = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")


class Flush(Enum):
    """The batch key of requests whose input has ended."""

    KEY = auto()


@dataclass(slots=True, eq=False)
class Seat:
    """A request's place in the engine: the model's state for it, from `open` to `close`.

    `due` is when the next output is wanted: media is played from its first chunk on, so what lies ahead of the listener may wait
    for those who have heard nothing yet. `leaving` is set when it is decided that the request ends; `close` may still be to come.
    """

    request: StageRequest
    state: object = None
    opened: bool = False
    emitted_at: float | None = None
    due: float = 0.0
    leaving: bool = False

    def emit(self, pts: float, now: float) -> None:
        """A chunk that begins at `pts` is out; the next is wanted when it is being played."""
        if self.emitted_at is None:
            self.emitted_at = now
        self.due = self.emitted_at + pts


class GenerationEngine:
    """One owner task decides, one thread computes; so the model is never called twice at once.

    A request takes part in a step with at most one input, which keeps its order, and only while it has credit.
    """

    def __init__(
        self,
        stage: str,
        model: GenerationModel[object],
        batch: BatchSpec,
        slots: int,
        thread: ThreadPoolExecutor,
        clock: Callable[[], float] = time.monotonic,
        hang_limit_s: float = DEFAULT_HANG_LIMIT_S,
    ) -> None:
        """A model of which a call takes longer than `hang_limit_s` is given up."""
        self.slot_freed: Callable[[], None] = lambda: None
        self._model = model
        self._batch = batch
        self._slots = slots
        self._thread = thread
        self._clock = clock
        self._counters = Counters(stage, slots, model.units)
        self._seats: dict[StageRequest, Seat] = {}
        self._entering: deque[Seat] = deque()
        self._leaving: deque[tuple[Seat, Callable[[], None]]] = deque()
        self._in_thread: tuple[Seat, ...] = ()
        self._wake = asyncio.Event()
        self._hang_limit_s = hang_limit_s
        self._watch = ProgressWatch(hang_limit_s)
        self._ending = False

    async def run(self) -> None:
        """Raises ModelDied in a group when the model hangs, after every open request has been told."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._work())
            group.create_task(self._end_when_hung())

    async def _work(self) -> None:
        while True:
            self._wake.clear()
            if self._leaving:
                await self._close(*self._leaving.popleft())
            elif self._entering:
                await self._open(self._entering.popleft())
            else:
                await self._step_or_wait()

    @property
    def free_slots(self) -> int:
        return 0 if self._ending else self._slots - len(self._seats)

    def submit(self, request: StageRequest) -> None:
        seat = self._seats[request] = Seat(request)
        self._entering.append(seat)
        self._wake.set()

    def changed(self, request: StageRequest) -> None:
        self._wake.set()

    def abort(self, request: StageRequest) -> None:
        request.end()
        if seat := self._seats.get(request):
            self._leave(seat, lambda: None)
            if self._is_apart(seat):
                self._release(seat)

    def fail(self, request: StageRequest, kind: ErrorKind, message: str) -> None:
        if seat := self._seats.get(request):
            self._leave(seat, lambda: request.fail(kind, message))
        else:
            request.fail(kind, message)

    def report(self) -> StageReport:
        queued = sum(len(request.inputs) for request in self._seats)
        return self._counters.report(active=len(self._seats), queued=queued)

    def shutdown(self) -> None:
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def _step_or_wait(self) -> None:
        rows, due = choose(self._ready(), self._batch, self._clock())
        if self._leaving:
            return  # a batch key could not be told, so its request has failed
        if not rows:
            await self._wait(due)
        elif rows[0].request.inputs:
            await self._step(rows)
        else:
            for seat in rows:
                await self._finish(seat)

    async def _wait(self, due: float | None) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(None if due is None else due - self._clock()):
                await self._wake.wait()

    def _ready(self) -> list[Ready[Seat]]:
        """The oldest input of every request that may run: `batch_key` is called here, between the calls of the thread."""
        ready: list[Ready[Seat]] = []
        for seat in self._seats.values():
            request = seat.request
            if seat.leaving or not seat.opened or not request.may_emit:
                continue
            service_class = request.submit.service_class
            if request.inputs:
                oldest = request.inputs[0]
                key = attempt(self._model.batch_key, seat.state, oldest.payload)
                if isinstance(key, Exception):
                    self._give_up(seat, key)
                else:
                    since, express = oldest.pushed_at, seat.emitted_at is None
                    ready.append(Ready(seat, key, since, max(since, seat.due), service_class, express))
            elif (since := request.input_ended_at) is not None:
                ready.append(Ready(seat, Flush.KEY, since, since, service_class, express=True))
        return ready

    async def _open(self, seat: Seat) -> None:
        if seat.leaving:
            return
        state = await self._call((seat,), attempt, self._model.open, seat.request.submit.parameters)
        if isinstance(state, Exception):
            self._give_up(seat, state)
        else:
            seat.state, seat.opened = state, True

    async def _close(self, seat: Seat, farewell: Callable[[], None]) -> None:
        if seat.opened:
            seat.opened = False
            error = await self._call((seat,), attempt, self._model.close, seat.state)
            if isinstance(error, Exception):
                self._log("closing failed", seat, error)
        self._release(seat)
        farewell()

    async def _step(self, rows: list[Seat]) -> None:
        inputs = [seat.request.take() for seat in rows]
        picked_up = self._clock()
        batch = [(seat.state, taken.payload) for seat, taken in zip(rows, inputs, strict=True)]
        step = await self._call(tuple(rows), run_batch, self._model, batch)
        self._counters.items += len(rows)
        self._counters.step(len(rows), step.run_ms)
        for seat, taken, outcome in zip(rows, inputs, step.outcomes, strict=True):
            self._deliver(seat, taken, outcome, ChunkTiming((picked_up - taken.pushed_at) * 1000, step.run_ms))

    def _deliver(self, seat: Seat, taken: Input, outcome: list[Produced] | Exception, timing: ChunkTiming) -> None:
        if isinstance(outcome, Exception):
            self._give_up(seat, outcome)
        elif not seat.leaving:
            for produced in outcome:
                self._produce(seat, produced, timing)

    async def _finish(self, seat: Seat) -> None:
        """The request's input has ended: what is still owed, then an empty final chunk. Its slot is free by then."""
        if seat.leaving:
            return
        seat.leaving, seat.opened = True, False
        picked_up = self._clock()
        flush = await self._call((seat,), flush_and_close, self._model, seat.state)
        self._release(seat)
        if isinstance(flush.outcome, Exception):
            self._log("flushing failed", seat, flush.outcome)
            seat.request.fail(*describe(flush.outcome))
            return
        ended_at = seat.request.input_ended_at or picked_up
        timing = ChunkTiming((picked_up - ended_at) * 1000, flush.run_ms)
        for produced in flush.outcome:
            self._produce(seat, produced, timing)
        self._counters.emitted += 1
        seat.request.produce(Payload(), timing, final=True)

    def _produce(self, seat: Seat, produced: Produced, timing: ChunkTiming) -> None:
        self._counters.produced += produced.units
        self._counters.emitted += 1
        seat.emit(produced.pts, self._clock())
        seat.request.produce(produced.payload, timing, pts=produced.pts)

    def _give_up(self, seat: Seat, error: Exception) -> None:
        if not isinstance(error, InvalidInput):
            self._log("the model raised", seat, error)
        self.fail(seat.request, *describe(error))

    def _leave(self, seat: Seat, farewell: Callable[[], None]) -> None:
        """The farewell is said when the state is closed, or at once while the thread is busy with others."""
        if seat.leaving:
            return
        seat.leaving = True
        self._wake.set()
        if self._is_apart(seat):
            self._leaving.append((seat, lambda: None))
            self._release(seat)
            farewell()
        else:
            self._leaving.append((seat, farewell))

    def _is_apart(self, seat: Seat) -> bool:
        """The thread is busy with other requests. Then one that leaves need not wait for it: nobody's step can reach it any more,
        and its state is closed first thing when the thread is free."""
        return bool(self._in_thread) and seat not in self._in_thread

    def _release(self, seat: Seat) -> None:
        if self._seats.pop(seat.request, None) is not None:
            seat.request.closed.set()
            self.slot_freed()

    async def _end_when_hung(self) -> None:
        await self._watch.hung.wait()
        reason = f"the model hangs: nothing has come from it for {self._hang_limit_s:g} s"
        self._ending = True
        for seat in list(self._seats.values()):
            self._release(seat)
            seat.request.fail(ErrorKind.ENGINE, reason)
        raise ModelDied(reason)

    async def _call(self, seats: tuple[Seat, ...], function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run in the engine's thread, on behalf of `seats`."""
        self._in_thread = seats
        try:
            with self._watch.waiting():
                return await asyncio.get_running_loop().run_in_executor(self._thread, lambda: function(*args, **kwargs))
        finally:
            self._in_thread = ()

    def _log(self, what: str, seat: Seat, error: Exception) -> None:
        submit = seat.request.submit
        with about(session=submit.session_id, request=submit.request_id):
            log.error("stage %s: %s", submit.stage, what, exc_info=error)
