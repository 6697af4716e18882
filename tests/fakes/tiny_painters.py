"""The tiny pipelines as they are served: tried once for all tests, with what each is asked in them."""

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from engines.diffusion.pipelines.job import PipelineJob
from engines.diffusion.pipelines.learning import try_out
from engines.diffusion.pipelines.pixels import picture, values
from engines.diffusion.pipelines.served import Served
from engines.diffusion.pipelines.trial import trials
from engines.diffusion.pipelines.ways import Ways
from engines.models.options import DiffusersOptions
from fakes import tiny_pipelines
from fakes.tiny_pipelines import Make, TinyPipeline


def served(make: Make, options: DiffusersOptions | None = None) -> Served:
    options = options or DiffusersOptions()
    made = Served(make(), options.step_cache)
    try_out(made, trials(made.takes, options))
    return made


@functools.cache
def known(name: str) -> Served:
    return served(tiny_pipelines.BY_NAME[name])


@functools.cache
def ways(name: str) -> Ways:
    """With what edits pictures."""
    found = Ways(Served(tiny_pipelines.BY_NAME[name]()))
    found.try_out(DiffusersOptions())
    return found


@functools.cache
def library(make: Make) -> TinyPipeline:
    """The same, as the library serves it."""
    return make()


@dataclass(slots=True, frozen=True)
class Request:
    prompt: str
    steps: int
    seed: int
    guidance: float
    width: int = 32
    height: int = 32
    joins_after: int = 0
    """Rounds."""

    def arguments(self, pipeline: Served) -> dict[str, object]:
        takes = pipeline.takes
        noise = np.random.default_rng(self.seed).integers(0, 256, (self.height, self.width, 3), np.uint8)
        possible: dict[str, object] = {
            "width": self.width,
            "height": self.height,
            "num_frames": 5,
            "image": picture(noise),
            "mask_image": picture(np.where(noise[..., 0] > 127, 255, 0).astype(np.uint8)),
            "strength": 0.8,
        }
        given = {name: value for name, value in possible.items() if name in takes.names}
        assert takes.guidance is not None
        given[takes.guidance] = self.guidance
        if takes.guidance == "true_cfg_scale":
            given["negative_prompt"] = "no"
        return {"prompt": self.prompt, "num_inference_steps": self.steps, "output_type": "np", **given}

    def by_the_library_alone(self, make: Make, pipeline: Served) -> NDArray[np.floating]:
        arguments = self.arguments(pipeline)
        return values(library(make)(**arguments, generator=torch.Generator().manual_seed(self.seed)))

    def begin(self, pipeline: Served, previews: int = 0) -> PipelineJob:
        return pipeline.begin(self.arguments(pipeline), self.seed, steps=self.steps, previews=previews)


def go_on(pipeline: Served, job: PipelineJob) -> list[NDArray[np.floating]]:
    """One call of it alone; the pictures that it showed."""
    [shown] = pipeline.advance([job])
    if isinstance(shown, Exception):
        raise shown
    return [values(one.result) for one in shown]


def alone(pipeline: Served, job: PipelineJob) -> NDArray[np.floating]:
    shown: list[NDArray[np.floating]] = []
    while job.calls_left:
        shown = go_on(pipeline, job)
    return shown[-1]


@dataclass(slots=True, frozen=True)
class Together:
    """`calls` of all jobs were made in `forwards`."""

    pictures: list[NDArray[np.floating]]
    calls: int
    forwards: int


def together(pipeline: Served, requests: Sequence[Request], begin_at: Sequence[Served] = ()) -> Together:
    """Each joins when its time has come; in each round, whoever has the key of the one that has waited longest has a call.
    `begin_at`: whose job each is, where they are not all of `pipeline`."""
    begin_at = begin_at or [pipeline] * len(requests)
    pictures: dict[int, NDArray[np.floating]] = {}
    waiting: list[tuple[int, PipelineJob]] = []
    calls = rounds = 0
    forwards = pipeline.forwards
    while len(pictures) < len(requests):
        for number, request in enumerate(requests):
            if request.joins_after == rounds:
                waiting.append((number, request.begin(begin_at[number])))
        rounds += 1
        if not waiting:
            continue
        sharing = [member for member in waiting if member[1].key == waiting[0][1].key]
        answers = pipeline.advance([job for _, job in sharing])
        calls += len(sharing)
        waiting = [member for member in waiting if member not in sharing]
        for (number, job), answer in zip(sharing, answers, strict=True):
            if isinstance(answer, Exception):
                raise answer
            if job.calls_left:
                waiting.append((number, job))
            else:
                pictures[number] = values(answer[-1].result)
    return Together([pictures[number] for number in range(len(requests))], calls, pipeline.forwards - forwards)
