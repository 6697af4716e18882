"""A job of a DIFFUSION engine from its input to its end: its deadline, its place in the schedule, and what its request hears."""

import math
from dataclasses import dataclass

from engines.chunks import ChunkTiming
from engines.diffusion.scheduling import Member
from engines.messages.to_worker import Submit
from engines.models import InvalidInput
from engines.models.diffusion import DEADLINE_MS, JOB, STEP, STEPS, UPDATE, Job
from engines.payloads import Payload, Scalar
from engines.worker.inbox import Input
from engines.worker.job_calls import Begun, Standing

PROGRESS_AFTER_S = 1.0
"""A job that has ended by then is not worth a chunk that says how far it is."""
PROGRESS_EVERY_S = 0.25


@dataclass(slots=True, eq=False)
class Work:
    """`number` counts the jobs of a request. `told_at` is when it last heard of this one, at first when its input came, and
    `ran_ms` how much of the time since then went into calls. Times are in seconds of the engine's clock."""

    number: int
    job: Job
    member: Member
    standing: Standing
    told_at: float
    ran_ms: float
    began_at: float

    @classmethod
    def of(cls, number: int, taken: Input, deadline: float | None, submit: Submit, begun: Begun, now: float) -> "Work":
        standing = begun.standing
        place = standing.key, standing.rows, standing.calls_left
        member = Member(submit.service_class.value, taken.pushed_at, deadline, *place, prepares=standing.prepares)
        return cls(number, begun.job, member, standing, taken.pushed_at, begun.run_ms, now)

    def follow(self, standing: Standing) -> None:
        member, self.standing = self.member, standing
        member.key, member.rows, member.calls_left = standing.key, standing.rows, standing.calls_left
        member.prepares = standing.prepares

    def attributes(self) -> dict[str, Scalar]:
        """Of every chunk."""
        return {JOB: self.number, STEP: self.standing.step, STEPS: self.standing.steps}

    def timing(self, now: float) -> ChunkTiming:
        """Of a chunk that is out now."""
        run_ms = self.ran_ms
        queue_ms = max(0.0, (now - self.told_at) * 1000 - run_ms)
        self.told_at, self.ran_ms = now, 0.0
        return ChunkTiming(queue_ms, run_ms)

    def owes_progress(self, now: float) -> bool:
        return now - self.began_at >= PROGRESS_AFTER_S and now - self.told_at >= PROGRESS_EVERY_S


def is_update(payload: Payload) -> bool:
    return payload.attributes.get(UPDATE) is True


def deadline_of(taken: Input, submit: Submit) -> float | None:
    """In seconds of the engine's clock: the input's own, else its request's. Raises InvalidInput."""
    deadline_ms = taken.payload.attributes.get(DEADLINE_MS, submit.deadline_ms)
    if deadline_ms is None:
        return None
    if isinstance(deadline_ms, bool | str) or not 0 <= deadline_ms < math.inf:
        raise InvalidInput(f"{DEADLINE_MS}: expected a finite number of milliseconds from 0 on, got {deadline_ms!r}")
    return taken.pushed_at + deadline_ms / 1000
