"""A pipeline of diffusers, any of them, from a directory in its layout. Prompts, and pictures where it takes them, become
pictures or a film; jobs of several requests share the calls of its networks. How: engines/diffusion/pipelines."""

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import cast

import msgspec
import torch

from engines.diffusion.pipelines.arguments import asked, check, fitted
from engines.diffusion.pipelines.compared import AnyJob, ComparedJob
from engines.diffusion.pipelines.job import PipelineJob, Shown
from engines.diffusion.pipelines.loading import load
from engines.diffusion.pipelines.pixels import pixels
from engines.diffusion.pipelines.refusals import refusal
from engines.diffusion.pipelines.run import Pipeline
from engines.diffusion.pipelines.samplers import sampler
from engines.diffusion.pipelines.served import Served
from engines.diffusion.pipelines.ways import Ways
from engines.models import InvalidInput, Produced
from engines.models.diffusion import PREVIEW
from engines.models.options import DiffusersOptions
from engines.models.snapshots import Snapshot, saved
from engines.parameters import Parameters, Picture
from engines.payloads import Array, Payload, Scalar
from engines.worker.foreign import attempt

logger = logging.getLogger(__name__)
KIND = "diffusers 1"
PIECE_BYTES = 8 * 1024 * 1024
ARGUMENTS = {"image": "image", "mask": "mask_image"}
PAYLOAD_NAMES = {argument: name for name, argument in ARGUMENTS.items()}


@dataclass(slots=True, eq=False)
class Pictures:
    """An open request: so many jobs of it have begun. The noise of job k is drawn from `seed` + k."""

    wanted: Picture
    begun: int = 0


class DiffusersPipeline:
    """The input is a prompt (text), with `image` uint8 [h, w, 3] and `mask` uint8 [h, w] for pipelines that take them; the
    output is `pixels` uint8 [n, h, w, 3], n the frames of a film and 1 for a picture. An `update` has only a prompt."""

    def __init__(self, pipeline: object, options: DiffusersOptions) -> None:
        self._options = options
        self._ways = Ways(Served(cast(Pipeline, pipeline), options.step_cache))
        self.units = "frames" if self._ways.own.takes.makes_films else "pictures"

    @classmethod
    def load(cls, directory: Path, options: dict[str, object]) -> "DiffusersPipeline":
        checked = msgspec.convert(options, DiffusersOptions)
        return cls(load(directory, checked), checked)

    def warm_up(self) -> None:
        logger.info("it has been read; now a few small pictures show which of its calls can be shared")
        self._ways.try_out(self._options)

    def open(self, parameters: Parameters) -> Pictures:
        if not isinstance(parameters, Picture):
            raise InvalidInput(f"parameters: expected picture, got {type(parameters).__name__}")
        wanted = fitted(parameters, self._ways.takes)
        check(wanted, self._ways.takes, self._options)
        sampler(wanted.sampler, self._ways.own.scheduler)
        return Pictures(wanted)

    def reset(self, state: Pictures) -> None:
        state.begun = 0

    def snapshot(self, state: Pictures) -> Payload:
        return saved(KIND, begun=state.begun)

    def restore(self, parameters: Parameters, snapshot: Payload) -> Pictures:
        begun = Snapshot(KIND, snapshot).count("begun")
        state = self.open(parameters)
        state.begun = begun
        return state

    def begin(self, state: Pictures, payload: Payload) -> AnyJob:
        way = self._ways.of({ARGUMENTS.get(name, name) for name in payload.arrays})
        check(state.wanted, way.takes, self._options)
        _check_previews(state.wanted.previews, way)
        wanted = asked(state.wanted, payload, way.takes, self._options)
        if missing := way.known.habits.required - wanted.arguments.keys():
            raise InvalidInput(f"{', '.join(sorted(PAYLOAD_NAMES[name] for name in missing))}: expected one, got none")
        chosen, seed = sampler(state.wanted.sampler, way.scheduler), (state.wanted.seed + state.begun) % 2**63
        begin = partial(way.begin, wanted.arguments, seed, steps=wanted.steps, scheduler=chosen)
        job = attempt(self._begun, begin, state.wanted.previews)
        if isinstance(job, Exception):
            raise refusal(job, way.pipeline, wanted.arguments, chosen) from job
        state.begun += 1
        return job

    def _begun(self, begin: Callable[..., PipelineJob], previews: int) -> AnyJob:
        job, cache = begin(previews=previews), self._options.step_cache
        return ComparedJob(job, begin(is_cached=False)) if cache is not None and cache.compare else job

    def update(self, job: AnyJob, payload: Payload) -> None:
        if why := job.known.habits.not_resumed:
            raise InvalidInput(f"update: expected none, since {why}")
        if payload.arrays or not payload.text:
            raise InvalidInput(
                f"update: expected a prompt and no arrays, got {len(payload.text)} characters and {len(payload.arrays)}"
            )
        if len(payload.text) > self._options.max_prompt_chars:
            raise InvalidInput(f"prompt: expected at most {self._options.max_prompt_chars} characters, got {len(payload.text)}")
        if job.step >= job.steps:
            raise InvalidInput(f"update: expected before the last step, got after step {job.step} of {job.steps}")
        with torch.no_grad():
            job.change({"prompt": payload.text})

    def advance(self, jobs: Sequence[AnyJob]) -> list[list[Produced] | Exception]:
        answers = self._ways.own.advance(jobs)  # an editor's networks are its own
        return [self._told(job, answer) for job, answer in zip(jobs, answers, strict=True)]

    def abandon(self, job: AnyJob) -> None:
        with torch.no_grad():
            job.drop()

    def close(self, state: Pictures) -> None:
        pass

    def _told(self, job: AnyJob, answer: list[Shown] | Exception) -> list[Produced] | Exception:
        if isinstance(answer, Exception):
            own = job.job if isinstance(job, ComparedJob) else job
            return answer if own.step else refusal(answer, own.pipeline, own.arguments, own.scheduler)
        return attempt(self._produced, job, answer)

    def _produced(self, job: AnyJob, all_shown: Sequence[Shown]) -> list[Produced]:
        return [produced for shown in all_shown for produced in self._pieces(job, shown)]

    def _pieces(self, job: AnyJob, shown: Shown) -> Iterator[Produced]:
        """A film in several, each small enough to travel; of its previews the frame in the middle."""
        frames = pixels(shown.result)
        if shown.preview is not None:
            frames = frames[len(frames) // 2 :][:1]
        attributes: dict[str, Scalar] = {} if shown.preview is None else {PREVIEW: shown.preview}
        if self._options.step_cache is not None:
            attributes.update(computed_calls=job.answers.computed_calls, reused_calls=job.answers.reused_calls)
        if isinstance(job, ComparedJob) and job.psnr_db is not None:
            attributes["psnr_db"] = round(job.psnr_db, 2)
        size = max(PIECE_BYTES // frames[0].nbytes, 1)
        for start in range(0, len(frames), size):
            piece = frames[start : start + size]
            yield Produced(Payload(arrays={"pixels": Array.of(piece)}, attributes=attributes), units=len(piece))


def _check_previews(previews: int, way: Served) -> None:
    """Raises InvalidInput."""
    if previews and (why := way.known.habits.not_shown):
        raise InvalidInput(f"previews: expected 0, since {why}; got {previews}")
