"""Drives a DIFFUSION model as its engine does: the same calls, shared by equal keys, and the same handling of what it raises."""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from engines.conformance import ConformanceFault
from engines.conformance.model_bench import ModelBench
from engines.models import Produced
from engines.models.diffusion import DiffusionModel, Job
from engines.payloads import Payload
from engines.worker.foreign import attempt
from engines.worker.job_calls import Begun, Standing, abandon, advance, begin_job
from engines.worker.model_calls import Outcome

MOST_CALLS = 10_000


@dataclass(slots=True, eq=False)
class Running:
    """A job that is under way. `failure` is what ended it before its time."""

    job: Job
    standing: Standing
    produced: list[Produced] = field(default_factory=list[Produced])
    failure: Exception | None = None

    @property
    def is_over(self) -> bool:
        return self.failure is not None or self.standing.calls_left == 0

    @property
    def outcome(self) -> Outcome:
        return self.failure or self.produced


class DiffusionBench(ModelBench[DiffusionModel[Any, Any]]):
    """An answer is all that a job gave, its previews too."""

    def outcomes(self, rows: list[tuple[object, Payload]]) -> list[Outcome]:
        begun = [begin_job(self.model, state, payload) for state, payload in rows]
        jobs = [one if isinstance(one, Exception) else Running(one.job, one.standing) for one in begun]
        self.to_the_end([job for job in jobs if isinstance(job, Running)])
        return [job.outcome if isinstance(job, Running) else job for job in jobs]

    def finish(self, state: object) -> list[Produced]:
        closed = attempt(self.model.close, state)
        if isinstance(closed, Exception):
            raise ConformanceFault(f"close raised {closed!r}") from closed
        return []

    def break_off(self, state: object, payload: Payload) -> None:
        job = self.begin(state, payload)
        self.call([job])
        self.give_up(job)

    def begin(self, state: object, payload: Payload) -> Running:
        begun = begin_job(self.model, state, payload)
        if not isinstance(begun, Begun):
            raise ConformanceFault(f"begin raised {begun!r} for an input of the samples") from begun
        return Running(begun.job, begun.standing)

    def call(self, jobs: Sequence[Running]) -> None:
        """One call for those of equal keys."""
        self.largest_step = max(self.largest_step, len(jobs))
        for job, outcome in zip(jobs, advance(self.model, [job.job for job in jobs]).outcomes, strict=True):
            if isinstance(outcome, Exception):
                job.failure = outcome
            else:
                job.standing = outcome.standing
                job.produced += outcome.produced

    def round(self, jobs: Iterable[Running]) -> None:
        """A call for each that is not over, together as far as their keys are equal."""
        groups: defaultdict[Hashable, list[Running]] = defaultdict(list)
        for job in jobs:
            if not job.is_over:
                groups[job.standing.key].append(job)
        for members in groups.values():
            self.call(members)

    def to_the_end(self, jobs: Sequence[Running]) -> None:
        for _ in range(MOST_CALLS):
            if all(job.is_over for job in jobs):
                return
            self.round(jobs)
        raise ConformanceFault(f"calls_left: expected 0 at some time, but {MOST_CALLS} calls were not enough")

    def give_up(self, job: Running) -> None:
        if not job.is_over:
            abandon(self.model, [job.job])
