"""What a fake painter answers, between the real models that read uploads and write files: previews in grey, then one colour,
which its seed and prompt tell, or the upload at half its brightness."""

import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import cast

import numpy as np
from numpy.typing import NDArray

from engines.bridges.assembled import Assembled
from engines.messages.to_gateway import ErrorKind
from engines.models import InvalidInput, Produced
from engines.models.developer import Developer
from engines.models.diffusion import PREVIEW
from engines.models.pixels import PixelsModel
from engines.parameters import Development, Picture
from engines.payloads import Array, Payload, Scalar
from engines.requests import Request, RequestFailed

SIDE = 64
MOST_STEPS = 100
NOTHING: Mapping[str, Scalar] = {}


def colour(prompt: str, seed: int) -> tuple[int, int, int]:
    number = zlib.crc32(f"{prompt}/{seed}".encode())
    return number & 255, number >> 8 & 255, number >> 16 & 255


def files(request: Request, inputs: Sequence[Payload], told: Mapping[str, Scalar] = NOTHING) -> Iterator[Payload]:
    """Progress, previews and files; `told` with what is finished. Raises RequestFailed as the engines do."""
    picture, wish = request.parameters["painter"], request.parameters["developer"]
    assert isinstance(picture, Picture)
    assert isinstance(wish, Development)
    assembled = Assembled(picture)
    for payload in inputs:
        assembled.feed(payload)
    [whole] = assembled.finish()
    if request.entry == "pixels":
        [whole] = _answered("pixels", PixelsModel.load(Path(), {}).run([(None, whole)])[0])
    model = Developer.load(Path(), {})
    room = model.open(wish)
    for painted in _painted(picture, whole):
        attributes = painted.attributes if PREVIEW in painted.attributes else {**painted.attributes, **told}
        finished = Payload(painted.text, painted.arrays, attributes)
        yield from _answered("developer", model.run([(room, finished)])[0])
    yield from (produced.payload for produced in model.flush(room))


def _painted(picture: Picture, told: Payload) -> Iterator[Payload]:
    steps = picture.steps or 4
    if steps > MOST_STEPS:
        raise RequestFailed(ErrorKind.INVALID, "painter", f"steps: expected at most {MOST_STEPS}, got {steps}")
    yield Payload(attributes={"step": 1, "steps": steps})
    count, height, width = picture.frames or 1, picture.height or SIDE, picture.width or SIDE
    for preview in range(picture.previews):
        grey = np.full((count, height, width, 3), 128, np.uint8)
        yield _pixels(grey, {"step": preview + 1, "steps": steps, "preview": preview})
    if "image" in told.arrays:
        seen = cast("NDArray[np.uint8]", told.arrays["image"].numpy())
        yield _pixels(seen[None] // 2, {"step": steps, "steps": steps})
    else:
        plain = np.broadcast_to(np.array(colour(told.text, picture.seed), np.uint8), (count, height, width, 3))
        yield _pixels(plain, {"step": steps, "steps": steps})


def _pixels(pixels: NDArray[np.uint8], attributes: dict[str, Scalar]) -> Payload:
    return Payload(arrays={"pixels": Array.of(pixels)}, attributes=attributes)


def _answered(stage: str, outcome: list[Produced] | InvalidInput) -> list[Payload]:
    if isinstance(outcome, InvalidInput):
        raise RequestFailed(ErrorKind.INVALID, stage, str(outcome))
    return [produced.payload for produced in outcome]
