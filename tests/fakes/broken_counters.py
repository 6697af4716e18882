"""Step counters with one fault each."""

import itertools
from collections.abc import Sequence

import numpy as np

from engines.models import InvalidInput, Produced
from engines.models.diffusion import PREVIEW
from engines.payloads import Array, Payload
from fakes.step_counter import Account, Count, StepCounter


class Fickle(StepCounter):
    """Its jobs cannot say how long they take."""

    class Changing(Count):
        times = itertools.count()

        @property
        def calls_left(self) -> int:
            return super().calls_left + next(self.times) % 2

    def begin(self, state: Account, payload: Payload) -> Count:
        right = super().begin(state, payload)
        return self.Changing(state, right.number, right.text, right.key, 1, right.steps, right.previews, right.sums)


class Unfinished(StepCounter):
    """Its jobs end before their last step."""

    def begin(self, state: Account, payload: Payload) -> Count:
        job = super().begin(state, payload)

        class Short(Count):
            @property
            def calls_left(self) -> int:
                return max(0, self.steps - 1 - self.step)

        return Short(state, job.number, job.text, job.key, job.rows, job.steps + 1, job.previews, job.sums)


class Blending(StepCounter):
    """Each job hears a little of the others."""

    def advance(self, jobs: Sequence[Count]) -> list[list[Produced] | Exception]:
        for job in jobs:
            job.sums = job.sums + np.float32(len(jobs) - 1)
        return super().advance(jobs)


class Backwards(StepCounter):
    def advance(self, jobs: Sequence[Count]) -> list[list[Produced] | Exception]:
        return super().advance(jobs)[::-1]


class InStep(StepCounter):
    """All are taken for as far as the first."""

    def advance(self, jobs: Sequence[Count]) -> list[list[Produced] | Exception]:
        for job in jobs:
            if jobs[0].step > job.step:
                job.sums = job.sums * np.float32(2)
        return super().advance(jobs)


class Sticky(StepCounter):
    """What was given up is still there after reset."""

    given_up: float = 0.0

    def abandon(self, job: Count) -> None:
        self.given_up += 1

    def reset(self, state: Account) -> None:
        super().reset(state)
        state.total = state.total + np.float32(self.given_up)


class Hasty(StepCounter):
    """Works on a job before it has read the next."""

    def advance(self, jobs: Sequence[Count]) -> list[list[Produced] | Exception]:
        return [answer for job in jobs for answer in super(Hasty, self).advance([job])]


class Obedient(StepCounter):
    """Refuses an update that it has taken already."""

    def update(self, job: Count, payload: Payload) -> None:
        job.text = payload.text
        raise InvalidInput("text: expected none, got one")


class Angry(StepCounter):
    def update(self, job: Count, payload: Payload) -> None:
        raise RuntimeError("no")


class Clinging(StepCounter):
    """Looks at its input again, at the end."""

    def begin(self, state: Account, payload: Payload) -> Count:
        job = super().begin(state, payload)

        class Holding(Count):
            input = payload

        return Holding(state, job.number, job.text, job.key, job.rows, job.steps, job.previews, job.sums)


class Leaking(StepCounter):
    """Forgets to free what is given up."""

    def __init__(self) -> None:
        super().__init__()
        self.given_up: list[bytes] = []

    def abandon(self, job: Count) -> None:
        self.given_up.append(bytes(100_000))


class Endless(StepCounter):
    """Its jobs go on for ever."""

    def add(self, job: Count) -> list[Produced]:
        job.steps += 1
        job.step += 1
        return []


class Smearing(StepCounter):
    """A preview shows what the job goes on to change."""

    def add(self, job: Count) -> list[Produced]:
        shown = job.sums
        made = super().add(job)
        shown[:] = job.sums
        job.sums = shown
        if not job.calls_left:
            return made
        return [Produced(Payload(job.text, {"sums": Array.of(shown)}, {PREVIEW: job.step - 1}))]
