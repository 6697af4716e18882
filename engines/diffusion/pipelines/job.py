"""A job: one run of a pipeline whose calls others may share, with the runs beside it that show how far it is."""

import sys
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field

import torch

from engines.diffusion.pipelines.answers import Answered
from engines.diffusion.pipelines.calls import Call
from engines.diffusion.pipelines.foretold import foretold
from engines.diffusion.pipelines.run import Pipeline, Run, Stepped
from engines.diffusion.pipelines.traits import Known

ALL_TURNS = sys.maxsize


@dataclass(slots=True, frozen=True)
class Shown:
    """What a run of the pipeline returned; `preview` is which one of the job's previews it is, None for the end."""

    result: object
    preview: int | None


@dataclass(slots=True, weakref_slot=True, eq=False)
class PipelineJob:
    """`arguments` are those of the pipeline's `__call__`, but for `generator`, which is the job's own. `_steps` is what they
    ask for, until the pipeline has made up its mind."""

    pipeline: Pipeline
    scheduler: object
    known: Known
    arguments: dict[str, object]
    generator: torch.Generator
    answers: Answered
    _steps: int
    previews: int = 0
    _main: Run = field(init=False)
    _beside: Run | None = None
    _shown: int = 0
    _began_with: torch.Tensor = field(init=False)
    _done: bool = False

    def __post_init__(self) -> None:
        self._began_with = self.generator.get_state()
        self._main = self._started(self._run(), {**self.arguments, "generator": self.generator})

    @property
    def call(self) -> Call:
        """The next one."""
        run = self._main if self._beside is None else self._beside
        assert run.waits_for is not None, "the job is done"
        return run.waits_for

    @property
    def key(self) -> Hashable:
        return None if self._done else self.call.key

    @property
    def rows(self) -> int:
        return 1 if self._done else self.call.rows

    @property
    def prepares(self) -> bool:
        return not self._done and self.call.prepares and self.step == 0

    @property
    def step(self) -> int:
        return self._main.step

    @property
    def steps(self) -> int:
        return self._steps

    @property
    def calls_left(self) -> int:
        if self._done:
            return 0
        main, habits = self._main, self.known.habits
        per_step = main.calls_per_step or habits.per_step
        still = max(self._steps - main.step, 0) * per_step + habits.tail + (0 if main.has_stepped else habits.head)
        return max(still + 1 - main.calls_in_step, 1) + (self._beside is not None)

    def take(self, output: object) -> list[Shown]:
        """The output of its call; on to the next. Raises what the pipeline raises."""
        shown: list[Shown] = []
        if self._beside is not None:
            self._beside.go_on(output)
        else:
            self._main.go_on(output)
            self._steps = self._main.steps or self._steps
            self._look_beside()
        if self._beside is not None and self._beside.waits_for is None:
            shown.append(Shown(self._beside.result, self._shown - 1))
            self._beside = None
        if self._beside is None and self._main.waits_for is None:
            self._done = True
            shown.append(Shown(self._main.result, None))
        return shown

    def change(self, changes: Mapping[str, object]) -> None:
        """Go on from the last step with other arguments. Raises what the pipeline raises; the job is then as it was."""
        arguments, main = {**self.arguments, **changes}, self._main
        if main.stepped_to is not None:
            self._began_with = self.generator.get_state()
        left, generator = main.stepped_to or main.resumes, self._generator(self._began_with)
        if left is None:
            fresh = self._started(self._run(), {**arguments, "generator": generator})
        else:
            fresh = self._resumed(left, arguments, left.latents, main.step, generator)
        main.drop()
        self._main, self.arguments, self.generator = fresh, arguments, generator
        self.answers.forget_steps()

    @property
    def left(self) -> Stepped:
        """By the last step done."""
        assert self._main.stepped_to is not None, "no step is done"
        return self._main.stepped_to

    def drop(self) -> None:
        for run in (self._beside, self._main):
            if run is not None:
                run.drop()
        self._done, self._beside = True, None

    def _look_beside(self) -> None:
        """Begin the preview that is due after the steps done."""
        left = self._main.stepped_to
        if left is None or self._main.waits_for is None or self._shown >= self.previews:
            return
        if self._main.step * (self.previews + 1) >= self._steps * (self._shown + 1) and self._main.step < self._steps:
            self.show(left, foretold(left))

    def show(self, left: Stepped, latents: torch.Tensor) -> None:
        """As the next preview, by a run beside, before its own goes on. Raises what the pipeline raises."""
        generator = self._generator(self.generator.get_state())
        self._beside = self._resumed(left, self.arguments, latents, ALL_TURNS, generator)
        self._shown += 1

    def _resumed(
        self, left: Stepped, arguments: Mapping[str, object], latents: torch.Tensor, skip: int, generator: torch.Generator
    ) -> Run:
        run = self._run()
        run.skip, run.resumes, run.latents = skip, left, latents
        return self._started(run, {**arguments, "generator": generator})

    def _run(self) -> Run:
        return Run(self.pipeline, self.scheduler, self.known.traits, self.answers)

    def _started(self, run: Run, arguments: Mapping[str, object]) -> Run:
        run.start(arguments)
        return run

    def _generator(self, state: torch.Tensor) -> torch.Generator:
        generator = torch.Generator(self.generator.device)
        generator.set_state(state)
        return generator
