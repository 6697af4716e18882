"""The DIFFUSION engine: jobs that go on in calls, which a scheduler lets them share, one at a time in a thread of its own."""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from engines.chunks import ChunkTiming
from engines.diffusion.scheduling import Member, Scheduler
from engines.messages.to_gateway import ErrorKind, StageReport
from engines.models import InvalidInput, Produced
from engines.models.diffusion import JOB, REFUSED, SHED, UPDATE, DiffusionModel, Job
from engines.payloads import Payload, Scalar
from engines.worker.counters import Counters
from engines.worker.foreign import attempt, describe
from engines.worker.inbox import Input
from engines.worker.job_calls import Outcome, abandon, advance, begin_job, update_job
from engines.worker.spec import DEFAULT_HANG_LIMIT_S
from engines.worker.stage_request import StageRequest
from engines.worker.threaded import Seat, ThreadedEngine
from engines.worker.under_way import Work, deadline_of, is_update

NO_TIME = ChunkTiming(0.0, 0.0)
SETTLE_S = 0.02
"""What is new is seen to for so long at a time: who runs already waits no longer for newcomers."""


@dataclass(slots=True, eq=False)
class Customer(Seat):
    """`work` is its job under way, of which it has one at most; `jobs` counts them."""

    work: Work | None = None
    jobs: int = 0


class DiffusionEngine(ThreadedEngine[Customer]):
    """A job takes part in calls only while its request has credit. Between two calls only those requests are looked at of which
    something is new (`_stirred`): with many open, a step costs no more than its own jobs."""

    def __init__(
        self,
        stage: str,
        model: DiffusionModel[object, Job],
        scheduler: Scheduler,
        slots: int,
        thread: ThreadPoolExecutor,
        clock: Callable[[], float] = time.monotonic,
        hang_limit_s: float = DEFAULT_HANG_LIMIT_S,
    ) -> None:
        super().__init__(slots, thread, clock, hang_limit_s)
        self._model = model
        self._scheduler = scheduler
        self._counters = Counters(stage, slots, model.units)
        self._stirred: dict[Customer, None] = {}
        self._scheduled: dict[Member, Customer] = {}
        """Whose each member of the schedule is."""
        self._running: tuple[Member, ...] = ()
        self._dropped: list[Job] = []
        """Shed, and still to be freed."""

    def changed(self, request: StageRequest) -> None:
        if seat := self._seats.get(request):
            self._stir(seat)

    def report(self) -> StageReport:
        queued = sum(len(request.inputs) for request in self._seats)
        not_begun = sum(not member.begun for member in self._scheduled)
        return self._counters.report(active=len(self._seats), queued=queued + not_begun)

    def _new_seat(self, request: StageRequest) -> Customer:
        return Customer(request)

    def _model_opens(self, seat: Customer) -> object:
        return self._model.open(seat.request.submit.parameters)

    def _model_closes(self, seat: Customer) -> None:
        if seat.work is not None:
            abandon(self._model, [seat.work.job])
        self._model.close(seat.state)

    async def _open(self, seat: Customer) -> None:
        await super()._open(seat)
        self._stir(seat)

    async def _close(self, seat: Customer, farewell: Callable[[], None]) -> None:
        await self._free_dropped()  # one of them may be the seat's
        await super()._close(seat, farewell)

    def _leave(self, seat: Customer, farewell: Callable[[], None]) -> None:
        super()._leave(seat, farewell)
        if seat.work is not None and seat.work.member not in self._running:
            self._withdraw(seat.work)

    async def _step_or_wait(self) -> None:
        await self._settle()
        if self._leaving or self._entering:
            return
        decision = self._scheduler.choose(self._clock())
        for member, why in decision.shed:
            self._shed(self._scheduled[member], why)
        if decision.run:
            await self._advance(decision.run)
        elif not decision.shed and not self._stirred:
            await self._wait(decision.look_at)

    # between two calls

    async def _settle(self) -> None:
        """What is new: jobs begin, are updated, end their request, or join the schedule."""
        await self._free_dropped()
        until = self._clock() + SETTLE_S
        for seat in list(self._stirred):
            if self._clock() >= until:
                return
            del self._stirred[seat]
            await self._begin(seat)
            await self._update(seat)
            self._enter_or_pause(seat)
            await self._finish(seat)

    async def _free_dropped(self) -> None:
        if self._dropped:
            jobs, self._dropped = self._dropped, []
            await self._call((), abandon, self._model, jobs)

    async def _begin(self, seat: Customer) -> None:
        """Inputs that cannot become a job are answered."""
        request = seat.request
        while seat.opened and not seat.leaving and seat.work is None and request.inputs and request.may_emit:
            taken = request.take()
            if is_update(taken.payload):
                self._say(seat, {REFUSED: "update: expected a job under way, got none"})
                continue
            deadline, now = attempt(deadline_of, taken, request.submit), self._clock()
            if isinstance(deadline, Exception):
                self._give_up(seat, deadline)
            elif deadline is not None and deadline < now:
                why = f"its deadline had passed {(now - deadline) * 1000:.0f} ms before it could begin"
                self._answer_shed(seat, {JOB: seat.jobs}, why)
                seat.jobs += 1
            else:
                await self._begin_job(seat, taken, deadline)

    async def _begin_job(self, seat: Customer, taken: Input, deadline: float | None) -> None:
        begun = await self._call((seat,), begin_job, self._model, seat.state, taken.payload)
        if isinstance(begun, Exception):
            self._give_up(seat, begun)
        else:
            seat.work = Work.of(seat.jobs, taken, deadline, seat.request.submit, begun, self._clock())
            seat.jobs += 1
            self._counters.items += 1

    async def _update(self, seat: Customer) -> None:
        request = seat.request
        while (work := seat.work) and not seat.leaving and request.inputs and request.may_emit:
            if not is_update(request.inputs[0].payload):
                return
            outcome = await self._call((seat,), update_job, self._model, work.job, request.take().payload)
            if isinstance(outcome, InvalidInput):
                self._say(seat, {REFUSED: str(outcome)} | work.attributes())
            elif isinstance(outcome, Exception):
                self._give_up(seat, outcome)
            else:
                work.follow(outcome)
                self._say(seat, {UPDATE: True} | work.attributes())

    def _enter_or_pause(self, seat: Customer) -> None:
        work = seat.work
        if work is None or seat.leaving:
            return
        if not seat.request.may_emit:
            self._withdraw(work)
        elif work.member not in self._scheduled:
            self._scheduled[work.member] = seat
            if refused := self._scheduler.enter(work.member, self._clock()):
                self._shed(seat, refused.why)

    async def _finish(self, seat: Customer) -> None:
        """All inputs are done: an empty final chunk. Its slot is free by then."""
        request = seat.request
        if seat.leaving or not seat.opened or seat.work is not None or request.inputs or request.input_ended_at is None:
            return
        seat.leaving, seat.opened = True, False
        error = await self._call((seat,), attempt, self._model_closes, seat)
        self._release(seat)
        if isinstance(error, Exception):
            self._log("closing failed", seat, error)
            request.fail(*describe(error))
        else:
            self._counters.emitted += 1
            request.produce(Payload(), NO_TIME, final=True)

    # a call

    async def _advance(self, run: tuple[Member, ...]) -> None:
        seats = tuple(self._scheduled[member] for member in run)
        jobs = [seat.work.job for seat in seats if seat.work is not None]
        self._running = run
        began = self._clock()
        step = await self._call(seats, advance, self._model, jobs)
        self._running = ()
        self._scheduler.ran(run, self._clock() - began)
        self._counters.step(sum(member.rows for member in run), step.run_ms)
        now = self._clock()
        for seat, outcome in zip(seats, step.outcomes, strict=True):
            if seat.work is not None:
                self._deliver(seat, seat.work, outcome, step.run_ms, now)

    def _deliver(self, seat: Customer, work: Work, outcome: Outcome, run_ms: float, now: float) -> None:
        failed = isinstance(outcome, Exception)
        if failed or outcome.standing.calls_left == 0:
            seat.work = None  # and there is nothing to abandon
        if failed or seat.work is None or seat.leaving:
            self._withdraw(work)
        if isinstance(outcome, Exception):
            self._give_up(seat, outcome)
        elif not seat.leaving:
            work.ran_ms += run_ms
            work.member.begun = True
            work.follow(outcome.standing)
            self._tell(seat, work, outcome.produced, now)

    def _tell(self, seat: Customer, work: Work, produced: list[Produced], now: float) -> None:
        for one in produced:
            payload = one.payload
            self._counters.produced += one.units
            self._counters.emitted += 1
            attributed = Payload(payload.text, payload.arrays, payload.attributes | work.attributes())
            seat.request.produce(attributed, work.timing(now), pts=one.pts)
        if seat.work is not None and work.owes_progress(now):
            self._say(seat, work.attributes(), work.timing(now))
        if seat.work is None or not seat.request.may_emit:
            self._stir(seat)

    # what is not done

    def _shed(self, seat: Customer, why: str) -> None:
        work = seat.work
        if work is None:
            return
        self._withdraw(work)
        if self._answer_shed(seat, work.attributes(), why):
            self._dropped.append(work.job)
            seat.work = None
            self._stir(seat)

    def _answer_shed(self, seat: Customer, attributes: dict[str, Scalar], why: str) -> bool:
        """Whether the request goes on."""
        request = seat.request
        self._counters.shed += 1
        goes_on = bool(request.inputs) or request.input_ended_at is None
        if goes_on:
            self._say(seat, {SHED: why} | attributes)
        else:
            seat.leaving = True
            self._part(seat, lambda: request.fail(ErrorKind.OVERLOADED, why))
        return goes_on

    def _withdraw(self, work: Work) -> None:
        self._scheduler.leave(work.member)
        self._scheduled.pop(work.member, None)

    def _say(self, seat: Customer, attributes: dict[str, Scalar], timing: ChunkTiming = NO_TIME) -> None:
        """A chunk without content."""
        self._counters.emitted += 1
        seat.request.produce(Payload(attributes=attributes), timing)

    def _stir(self, seat: Customer) -> None:
        self._stirred[seat] = None
        self._wake.set()
