"""The GENERATION engine: continuous batching of tensor-in, tensor-out models, one step at a time in a thread of its own."""

import time
from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from enum import Enum, auto

from engines.chunks import ChunkTiming
from engines.messages.to_gateway import StageReport
from engines.models import GenerationModel, Produced
from engines.payloads import Payload
from engines.worker.batching import Ready, choose
from engines.worker.counters import Counters
from engines.worker.foreign import attempt, describe
from engines.worker.inbox import Input
from engines.worker.model_calls import flush_and_close, run_batch
from engines.worker.spec import DEFAULT_HANG_LIMIT_S, BatchSpec
from engines.worker.stage_request import StageRequest
from engines.worker.threaded import Seat, ThreadedEngine


class Flush(Enum):
    """The batch key of requests whose input has ended."""

    KEY = auto()


@dataclass(slots=True, eq=False)
class Listened(Seat):
    """`due` is when the next output is wanted: media is played from its first chunk on, so what lies ahead of the listener may
    wait for those who have heard nothing yet."""

    emitted_at: float | None = None
    due: float = 0.0

    def emit(self, pts: float, now: float) -> None:
        """A chunk that begins at `pts` is out; the next is wanted when it is being played."""
        if self.emitted_at is None:
            self.emitted_at = now
        self.due = self.emitted_at + pts


class GenerationEngine(ThreadedEngine[Listened]):
    """A request takes part in a step with at most one input, which keeps its order, and only while it has credit."""

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
        super().__init__(slots, thread, clock, hang_limit_s)
        self._model = model
        self._batch = batch
        self._counters = Counters(stage, slots, model.units)

    def report(self) -> StageReport:
        queued = sum(len(request.inputs) for request in self._seats)
        return self._counters.report(active=len(self._seats), queued=queued)

    def _new_seat(self, request: StageRequest) -> Listened:
        return Listened(request)

    def _model_opens(self, seat: Listened) -> object:
        return self._model.open(seat.request.submit.parameters)

    def _model_closes(self, seat: Listened) -> None:
        self._model.close(seat.state)

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

    def _ready(self) -> list[Ready[Listened]]:
        """The oldest input of every request that may run: `batch_key` is called here, between the calls of the thread."""
        ready: list[Ready[Listened]] = []
        for seat in self._seats.values():
            request = seat.request
            if seat.leaving or not seat.opened or not request.may_emit:
                continue
            service_class = request.submit.service_class
            if request.inputs:
                oldest = request.inputs[0]
                key = attempt(self._batch_key, seat, oldest.payload)
                if isinstance(key, Exception):
                    self._give_up(seat, key)
                else:
                    since, express = oldest.pushed_at, seat.emitted_at is None
                    ready.append(Ready(seat, key, since, max(since, seat.due), service_class, express))
            elif (since := request.input_ended_at) is not None:
                ready.append(Ready(seat, Flush.KEY, since, since, service_class, express=True))
        return ready

    def _batch_key(self, seat: Listened, payload: Payload) -> Hashable:
        """Raises what the model raises, and TypeError for a key that is none."""
        key = self._model.batch_key(seat.state, payload)
        hash(key)
        return key

    async def _step(self, rows: list[Listened]) -> None:
        inputs = [seat.request.take() for seat in rows]
        picked_up = self._clock()
        batch = [(seat.state, taken.payload) for seat, taken in zip(rows, inputs, strict=True)]
        step = await self._call(tuple(rows), run_batch, self._model, batch)
        self._counters.items += len(rows)
        self._counters.step(len(rows), step.run_ms)
        for seat, taken, outcome in zip(rows, inputs, step.outcomes, strict=True):
            self._deliver(seat, taken, outcome, ChunkTiming((picked_up - taken.pushed_at) * 1000, step.run_ms))

    def _deliver(self, seat: Listened, taken: Input, outcome: list[Produced] | Exception, timing: ChunkTiming) -> None:
        if isinstance(outcome, Exception):
            self._give_up(seat, outcome)
        elif not seat.leaving:
            for produced in outcome:
                self._produce(seat, produced, timing)

    async def _finish(self, seat: Listened) -> None:
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

    def _produce(self, seat: Listened, produced: Produced, timing: ChunkTiming) -> None:
        self._counters.produced += produced.units
        self._counters.emitted += 1
        seat.emit(produced.pts, self._clock())
        seat.request.produce(produced.payload, timing, pts=produced.pts)
