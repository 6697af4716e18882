"""What a step cache costs in exactness: a job done with it, and then again without."""

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from engines.diffusion.pipelines.answers import Answered
from engines.diffusion.pipelines.calls import Call
from engines.diffusion.pipelines.job import PipelineJob, Shown
from engines.diffusion.pipelines.pixels import values
from engines.diffusion.pipelines.traits import Known

SAME_DB = 100.0
"""What is said of equal pictures, whose ratio has no end."""


@dataclass(slots=True, weakref_slot=True, eq=False)
class ComparedJob:
    """It shows what `job` shows, the end when `exact`, the same without a step cache, has come to its own. A job that was
    changed on the way is not compared."""

    job: PipelineJob
    exact: PipelineJob | None
    psnr_db: float | None = None
    _end: Shown | None = None

    @property
    def _current(self) -> PipelineJob:
        return self.job if self.job.calls_left or self.exact is None else self.exact

    @property
    def call(self) -> Call:
        return self._current.call

    @property
    def key(self) -> Hashable:
        return self._current.key

    @property
    def rows(self) -> int:
        return self._current.rows

    @property
    def prepares(self) -> bool:
        return self._current.prepares

    @property
    def step(self) -> int:
        return self.job.step

    @property
    def steps(self) -> int:
        return self.job.steps

    @property
    def calls_left(self) -> int:
        return self.job.calls_left + (0 if self.exact is None else self.exact.calls_left)

    @property
    def answers(self) -> Answered:
        return self.job.answers

    @property
    def known(self) -> Known:
        return self.job.known

    def take(self, output: object) -> list[Shown]:
        """Raises what the pipeline raises."""
        current = self._current
        shown = current.take(output)
        if current.calls_left or self.exact is None:
            return shown
        if current is self.job:
            *previews, end = shown
            self._end = end
            return previews
        assert self._end is not None
        self.psnr_db = psnr_db(self._end.result, shown[-1].result)
        return [self._end]

    def change(self, changes: Mapping[str, object]) -> None:
        """Raises what the pipeline raises; the job is then as it was."""
        self.job.change(changes)
        if self.exact is not None:
            self.exact.drop()
            self.exact = None

    def drop(self) -> None:
        for job in (self.job, self.exact):
            if job is not None:
                job.drop()


AnyJob: TypeAlias = PipelineJob | ComparedJob


def psnr_db(one: object, other: object) -> float:
    """Of what two runs of a pipeline returned: the largest value over the mean error, in dB; at most SAME_DB."""
    mean_square = float(np.square(values(one).astype(np.float64) - values(other)).mean())
    return min(-10 * math.log10(mean_square), SAME_DB) if mean_square else SAME_DB
