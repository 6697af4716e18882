"""What a DIFFUSION engine runs inside its thread."""

import logging
import operator
import time
from collections.abc import Hashable, Sequence
from traceback import clear_frames
from typing import NamedTuple, TypeAlias

from engines.models import Produced
from engines.models.diffusion import DiffusionModel, Job
from engines.payloads import Payload
from engines.worker.answers import Answer, answers
from engines.worker.foreign import attempt

log = logging.getLogger(__name__)


class Standing(NamedTuple):
    """What a job says of itself between two calls: engines/models/diffusion.py says what each means."""

    key: Hashable
    rows: int
    calls_left: int
    step: int
    steps: int
    prepares: bool


class Begun(NamedTuple):
    job: Job
    standing: Standing
    run_ms: float


class Advanced(NamedTuple):
    produced: list[Produced]
    standing: Standing


Outcome: TypeAlias = Advanced | Exception


class Step(NamedTuple):
    """One outcome for each job; one that failed is abandoned already. `run_ms` is measured inside the thread."""

    outcomes: list[Outcome]
    run_ms: float


def begin_job(model: DiffusionModel[object, Job], state: object, payload: Payload) -> Begun | Exception:
    started = time.perf_counter()
    job = attempt(model.begin, state, payload)
    if isinstance(job, Exception):
        return job
    standing = attempt(_going_on, job)
    if isinstance(standing, Exception):
        abandon(model, [job])
        return standing
    return Begun(job, standing, _ms_since(started))


def advance(model: DiffusionModel[object, Job], jobs: Sequence[Job]) -> Step:
    """When the model raises for several jobs, they go on one by one, so that only the guilty one fails."""
    started = time.perf_counter()
    answers = _answers(model, jobs)
    outcomes = [_settled(model, job, answer) for job, answer in zip(jobs, answers, strict=True)]
    return Step(outcomes, _ms_since(started))


def update_job(model: DiffusionModel[object, Job], job: Job, payload: Payload) -> Standing | Exception:
    updated = attempt(model.update, job, payload)
    return updated if isinstance(updated, Exception) else attempt(_going_on, job)


def abandon(model: DiffusionModel[object, Job], jobs: Sequence[Job]) -> None:
    """Each, whatever the others do."""
    for job in jobs:
        error = attempt(model.abandon, job)
        if isinstance(error, Exception):
            log.error("abandoning a job failed", exc_info=error)


def _answers(model: DiffusionModel[object, Job], jobs: Sequence[Job]) -> list[Answer]:
    answer = attempt(model.advance, jobs)
    if isinstance(answer, Exception):
        # Its traceback would keep what the failed call had allocated, and so fail the jobs after it when that was all the memory.
        clear_frames(answer.__traceback__)
        return [_answers(model, [job])[0] for job in jobs] if len(jobs) > 1 else [answer]
    return answers(answer, len(jobs))


def _settled(model: DiffusionModel[object, Job], job: Job, answer: Answer) -> Outcome:
    outcome = answer if isinstance(answer, Exception) else attempt(_advanced, job, answer)
    if isinstance(outcome, Exception):
        abandon(model, [job])
    return outcome


def _advanced(job: Job, produced: list[Produced]) -> Advanced:
    return Advanced(produced, _standing(job))


def _going_on(job: Job) -> Standing:
    """Of one that is not done. Raises as `_standing` does."""
    standing = _standing(job)
    if standing.calls_left == 0:
        raise RuntimeError("the job is to go on without a call to come")
    return standing


def _standing(job: Job) -> Standing:
    """Raises whatever the job raises, TypeError for numbers that are not whole, and RuntimeError for what cannot be."""
    rows, calls_left, step, steps = map(operator.index, (job.rows, job.calls_left, job.step, job.steps))
    standing = Standing(job.key, rows, calls_left, step, steps, bool(job.prepares))
    hash(standing.key)
    if standing.calls_left < 0 or (standing.calls_left and standing.rows < 1):
        raise RuntimeError(
            f"the job has {standing.calls_left} calls left, the next of {standing.rows} rows: expected 0 or more, and at least 1"
        )
    return standing


def _ms_since(started: float) -> float:
    return (time.perf_counter() - started) * 1000
