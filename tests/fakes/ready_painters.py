"""Tiny pipelines of diffusers in folders, loaded and warmed up as a worker does it, and what they paint."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from engines.diffusion.pipelines.compared import AnyJob
from engines.models import Produced
from engines.models.diffusers_pipeline import DiffusersPipeline
from engines.parameters import Picture
from engines.payloads import Payload
from fakes import tiny_pipelines

SMALL = Picture(width=32, height=32, steps=4, guidance=4.0)
CAT = Payload("a cat")


def folders(somewhere: pytest.TempPathFactory) -> Callable[[str], Path]:
    """By name, each made when it is first asked for: picture, again (image to image), inpaint, film."""
    made: dict[str, Path] = {}

    def find(name: str) -> Path:
        if name not in made:
            makes = {
                "picture": tiny_pipelines.stable_diffusion,
                "again": tiny_pipelines.image_to_image,
                "inpaint": tiny_pipelines.inpaint,
                "film": tiny_pipelines.wan,
            }
            made[name] = tiny_pipelines.save(makes[name], somewhere.mktemp(name))
        return made[name]

    return find


def ready(directory: Path, **options: object) -> DiffusersPipeline:
    model = DiffusersPipeline.load(directory, options)
    model.warm_up()
    return model


def to_the_end(model: DiffusersPipeline, job: AnyJob) -> list[Produced]:
    produced: list[Produced] = []
    while job.calls_left:
        [answer] = model.advance([job])
        if isinstance(answer, Exception):
            raise answer
        produced += answer
    return produced


def painted(model: DiffusersPipeline, wanted: Picture, payload: Payload = CAT) -> NDArray[np.uint8]:
    return pixels(to_the_end(model, model.begin(model.open(wanted), payload))[-1])


def pixels(produced: Produced) -> NDArray[np.uint8]:
    found = produced.payload.arrays["pixels"].numpy()
    assert found.dtype == np.uint8
    return found.astype(np.uint8)


def mean_error(one: NDArray[np.uint8], other: NDArray[np.uint8]) -> float:
    return float(np.abs(one.astype(int) - other.astype(int)).mean())
