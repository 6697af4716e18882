"""A native step model as the DIFFUSION engine wants one: jobs, steps, noise and sessions around a network that denoises."""

import logging
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Generic, NamedTuple, cast

import torch
from torch import Tensor

from engines.diffusion.native import Cond, Content, Finished, Start, StepModel
from engines.diffusion.native.forward import Row, predictions
from engines.diffusion.native.levels import MOST_STEPS, Levels
from engines.diffusion.native.noise import START, Source
from engines.diffusion.native.route import Place, Route
from engines.diffusion.native.sessions import Session, Sessions, Written
from engines.models import InvalidInput, NoRoom, Produced
from engines.models.options import NativeOptions
from engines.parameters import Denoising, Parameters
from engines.payloads import Payload

log = logging.getLogger(__name__)


@dataclass(slots=True, eq=False)
class NativeJob(Generic[Content, Cond]):
    """One row from noise to clean values. Until it is done, its session knows nothing of it."""

    session: Session[Content]
    cond: Cond
    start: Start[Cond]
    route: Route
    place: Place

    @property
    def key(self) -> Hashable:
        guide = self.start.guide
        return tuple(self.place.x.shape), self.start.bucket, guide is not None and guide.with_gradient

    @property
    def rows(self) -> int:
        return 1

    @property
    def calls_left(self) -> int:
        return self.route.calls_left(self.place)

    @property
    def prepares(self) -> bool:
        return False

    @property
    def step(self) -> int:
        return self.place.step

    @property
    def steps(self) -> int:
        return self.route.steps


class _Moved(NamedTuple, Generic[Content]):
    """What a call would make of a job; `end` is None before its last one, and the exception of a job that failed in it."""

    place: Place
    end: Finished[Content] | Exception | None


class NativeModel(Generic[Content, Cond]):
    """`DiffusionModel` over any StepModel: engines/models/diffusion.py says what each method promises.

    Rows at any step, of any number of steps, of both parametrisations and both solvers share a forward.
    """

    def __init__(self, network: StepModel[Content, Cond], options: NativeOptions) -> None:
        self._network = network
        about = network.description
        self.units = about.units
        self._steps = options.steps or about.steps
        self._levels = _levels(about.levels, options)
        self._options = options
        self._pad_to = options.pad_to
        self._sessions = Sessions(about.kind, network.empty(), options.state_mb << 20)

    @property
    def state_bytes(self) -> int:
        """What the states of all sessions hold now."""
        return self._sessions.nbytes

    def warm_up(self) -> None:
        """Where equal results are promised it is also seen whether a row gets the same at every place of a forward: kernels of
        some shapes do not give that. Then each has a forward of its own."""
        for payload in self._network.warm_ups():
            session = self.open(Denoising())
            job = self.begin(session, payload)
            while job.calls_left:
                self._try_places(job)
                for outcome in self.advance([job]):
                    if isinstance(outcome, Exception):
                        raise outcome
            self.close(session)

    def open(self, parameters: Parameters) -> Session[Content]:
        return self._sessions.open(_checked(parameters))

    def fork(self, state: Session[Content], parameters: Parameters) -> Session[Content]:
        """Goes on where `state` is, with noise of its own when the seed is another. A job that is under way stays with `state`.
        Raises what `open` raises."""
        return self._sessions.fork(state, _checked(parameters))

    def reset(self, state: Session[Content]) -> None:
        self._sessions.reset(state)

    def snapshot(self, state: Session[Content]) -> Payload:
        return self._sessions.snapshot(state)

    def restore(self, parameters: Parameters, snapshot: Payload) -> Session[Content]:
        return self._sessions.restore(_checked(parameters), snapshot)

    def close(self, state: Session[Content]) -> None:
        self._sessions.close(state)

    def begin(self, state: Session[Content], payload: Payload) -> NativeJob[Content, Cond]:
        with torch.no_grad():
            start = self._network.prepare(state.content, payload)
            wanted = (start.steps, state.wanted.steps, self._steps)
            steps = _checked_steps(next(steps for steps in wanted if steps is not None))
            levels = self._levels._replace(parametrisation=state.wanted.sampler or self._levels.parametrisation)
            route = Route.over(levels, steps, self._network.description.takes, self._options.solver)
            return NativeJob(state, start.cond, start, route, route.begin(self._noise(state, start)))

    def update(self, job: NativeJob[Content, Cond], payload: Payload) -> None:
        with torch.no_grad():
            job.cond = self._network.update(job.session.content, job.cond, payload)

    def advance(self, jobs: Sequence[NativeJob[Content, Cond]]) -> list[list[Produced] | Exception]:
        with torch.no_grad():
            clean = predictions(self._network, [_row(job) for job in jobs], self._pad_to)
            moved = [self._moved(job, values) for job, values in zip(jobs, clean, strict=True)]
        # From here on nothing raises: the jobs may change.
        return [self._settled(job, after) for job, after in zip(jobs, moved, strict=True)]

    def abandon(self, job: NativeJob[Content, Cond]) -> None:
        """Its session has not changed, and what it held goes with it."""

    def _try_places(self, job: NativeJob[Content, Cond]) -> None:
        if self._pad_to <= 1:
            return
        with torch.no_grad():
            first, *others = predictions(self._network, [_row(job)] * self._pad_to, self._pad_to)
        if not all(torch.equal(first, other) for other in others):
            log.warning("pad_to %d: a row's values depend on its place in the forward, so each has one of its own", self._pad_to)
            self._pad_to = 1

    def _noise(self, state: Session[Content], start: Start[Cond]) -> Tensor:
        source = state.source if start.seed is None else Source(start.seed, "", 0)
        shape = self._network.description.shape if start.shape is None else start.shape
        return source.normal(START, shape).to(self._network.device)

    def _moved(self, job: NativeJob[Content, Cond], clean: Tensor) -> _Moved[Content]:
        place = job.route.after(job.place, clean)
        return _Moved(place, None if job.route.calls_left(place) else self._end(job, place.x))

    def _end(self, job: NativeJob[Content, Cond], x: Tensor) -> Finished[Content] | Exception:
        if not bool(torch.isfinite(x).all()):
            return RuntimeError("the network's values are not all finite")
        try:
            produced, content = self._network.finish(job.session.content, job.cond, x)
        except InvalidInput as refused:
            return refused
        self._sessions.check(job.session, content)
        return Finished(produced, content)

    def _settled(self, job: NativeJob[Content, Cond], moved: _Moved[Content]) -> list[Produced] | Exception:
        job.place = moved.place
        if moved.end is None or isinstance(moved.end, Exception):
            return moved.end or []
        try:
            self._sessions.keep(job.session, moved.end.content)
        except (NoRoom, Written) as refused:
            return refused
        return moved.end.produced


def _row(job: NativeJob[Content, Cond]) -> Row[Content, Cond]:
    level, scale = job.route.asked(job.place)
    return Row(job.place.x, scale, level, job.cond, job.session.content, job.start.guide)


def _levels(own: Levels, options: NativeOptions) -> Levels:
    return own._replace(
        parametrisation=options.sampler or own.parametrisation,
        shift=own.shift if options.shift is None else options.shift,
    )


def _checked(parameters: Parameters) -> Denoising:
    wanted = cast(Denoising, parameters)
    if wanted.steps is not None:
        _checked_steps(wanted.steps)
    return wanted


def _checked_steps(steps: int) -> int:
    if not 1 <= steps <= MOST_STEPS:
        raise InvalidInput(f"steps: expected 1 to {MOST_STEPS}, got {steps}")
    return steps
