"""Painted pixels become files: pictures as PNG, JPEG or WebP, frames as an MP4."""

from base64 import b64encode
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias, cast

import msgspec
import numpy as np
from numpy.typing import NDArray

from engines.models import InvalidInput, Produced
from engines.models.diffusion import PREVIEW
from engines.models.film import film, reel
from engines.models.options import NoOptions
from engines.models.snapshots import Snapshot, saved
from engines.models.stills import StillFormat, still
from engines.parameters import Development, Parameters
from engines.payloads import Array, Payload, Scalar

Pixels: TypeAlias = NDArray[np.uint8]

KIND = "developer 1"
PIECE_BYTES = 1 << 20
"""A film leaves in pieces that any connector takes."""


@dataclass(slots=True)
class Darkroom:
    """One request. `reels` are its film so far, `frames` of `size` (height, width)."""

    wish: Development
    reels: bytearray = field(default_factory=bytearray)
    frames: int = 0
    size: tuple[int, int] = (0, 0)

    def reset(self) -> None:
        self.reels, self.frames, self.size = bytearray(), 0, (0, 0)


class Developer:
    """Takes `pixels` uint8 [n, h, w, 3] with any attributes, and emits `bytes` uint8 [size] with the same attributes and
    `format`, `width` and `height`: of pictures a file for each of the n, of frames the whole film when their input has ended, in
    pieces to be joined, with `frames`. A preview of a film is its middle frame as JPEG. What has no pixels (progress) goes on as
    it is.
    """

    units = "pictures"

    @classmethod
    def load(cls, directory: Path, options: dict[str, object]) -> "Developer":
        """It has no files. Raises msgspec.ValidationError that names a wrong option."""
        msgspec.convert(options, NoOptions)
        return cls()

    def warm_up(self) -> None:
        film(reel(np.zeros((2, 16, 16, 3), np.uint8), frames_per_s=16), frames_per_s=16)

    def open(self, parameters: Parameters) -> Darkroom:
        return Darkroom(cast(Development, parameters))

    def reset(self, state: Darkroom) -> None:
        state.reset()

    def snapshot(self, state: Darkroom) -> Payload:
        height, width = state.size
        kept = saved(KIND, frames=state.frames, height=height, width=width)
        reels = Array.of(np.frombuffer(bytes(state.reels), np.uint8))
        return Payload(arrays={"reels": reels}, attributes=kept.attributes)

    def restore(self, parameters: Parameters, snapshot: Payload) -> Darkroom:
        known, reels = Snapshot(KIND, snapshot), snapshot.arrays.get("reels")
        if reels is None or reels.dtype != "uint8" or reels.shape != (reels.data.nbytes,):
            raise InvalidInput(f"snapshot.reels: expected uint8 [n], got {'nothing' if reels is None else reels.dtype}")
        state = self.open(parameters)
        state.reels, state.frames = bytearray(reels.data), known.count("frames")
        state.size = known.count("height"), known.count("width")
        return state

    def batch_key(self, state: Darkroom, payload: Payload) -> Hashable:
        """Each alone: encoding is no faster for several."""
        return id(state)

    def run(self, batch: Sequence[tuple[Darkroom, Payload]]) -> list[list[Produced] | InvalidInput]:
        return [_developed(state, payload) for state, payload in batch]

    def flush(self, state: Darkroom) -> list[Produced]:
        if not state.frames:
            return []
        file = film(bytes(state.reels), state.wish.frames_per_s)
        told = _told("mp4", state.size) | {"frames": state.frames}
        pieces = [file[start : start + PIECE_BYTES] for start in range(0, len(file), PIECE_BYTES)]
        return [_produced(piece, told, units=0) for piece in pieces]

    def close(self, state: Darkroom) -> None:
        state.reset()


def _developed(state: Darkroom, payload: Payload) -> list[Produced] | InvalidInput:
    if "pixels" not in payload.arrays:
        return [Produced(payload)]
    try:
        pixels = _pixels(payload.arrays["pixels"])
        if state.wish.format != "mp4":
            return _stills(pixels, state.wish.format, state.wish, payload)
        if PREVIEW in payload.attributes:
            middle = len(pixels) // 2
            return _stills(pixels[middle : middle + 1], "jpeg", state.wish, payload)
        return _filmed(state, pixels, payload)
    except InvalidInput as wrong:
        return wrong


def _pixels(array: Array) -> Pixels:
    """Raises InvalidInput."""
    if array.dtype != "uint8" or len(array.shape) != 4 or array.shape[3] != 3 or not all(array.shape):
        raise InvalidInput(f"pixels: expected uint8 [n, h, w, 3], got {array.dtype} {list(array.shape)}")
    return cast(Pixels, array.numpy())


def _stills(pixels: Pixels, format: StillFormat, wish: Development, payload: Payload) -> list[Produced]:
    _, height, width, _ = pixels.shape
    told = {**payload.attributes, **_told(format, (height, width))}
    units = 0 if PREVIEW in payload.attributes else 1
    files = [still(picture, format, wish.quality) for picture in pixels]
    return [_produced(b64encode(file) if wish.as_base64 else file, told, units) for file in files]


def _filmed(state: Darkroom, pixels: Pixels, payload: Payload) -> list[Produced]:
    """Raises InvalidInput for frames of another size."""
    frames, height, width, _ = pixels.shape
    if state.frames and (height, width) != state.size:
        raise InvalidInput(f"pixels: expected frames of {state.size} (height, width) as before, got {(height, width)}")
    piece = reel(pixels, state.wish.frames_per_s)
    state.reels += piece
    state.frames, state.size = state.frames + frames, (height, width)
    return [Produced(Payload(payload.text, attributes=payload.attributes), units=frames)]


def _told(format: str, size: tuple[int, int]) -> dict[str, Scalar]:
    return {"format": format, "height": size[0], "width": size[1]}


def _produced(file: bytes, told: dict[str, Scalar], units: int) -> Produced:
    return Produced(Payload(arrays={"bytes": Array.of(np.frombuffer(file, np.uint8))}, attributes=told), units=units)
