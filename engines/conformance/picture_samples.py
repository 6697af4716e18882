"""Samples for the families that read and write pictures, drawn from a seed."""

from collections.abc import Mapping

import numpy as np

from engines.conformance.samples import GenerationSamples
from engines.models.stills import StillFormat, still
from engines.parameters import Development, Picture
from engines.payloads import Array, Payload


def uploads(options: Mapping[str, object]) -> GenerationSamples:
    """Files of every format, alone and with a mask; bytes that are none, floats, and a mask without its picture."""
    return GenerationSamples(
        parameters=Picture(),
        sequences=tuple(tuple(_upload(seed, format) for format in ("png", "jpeg", "webp")) for seed in range(2)),
        wrong=(
            Payload(arrays={"image": _bytes(b"no picture")}),
            Payload(arrays={"image": _bytes(_drawn(0, "png")[:100])}),
            Payload(arrays={"image": Array.of(np.zeros(8, np.float32))}),
            Payload(arrays={"mask": _bytes(_drawn(0, "png"))}),
        ),
    )


def painted(options: Mapping[str, object]) -> GenerationSamples:
    """As a film: what has a state."""
    sequences = tuple(tuple(Payload(arrays={"pixels": Array.of(_frames(seed, 3))}) for _ in range(3)) for seed in range(2))
    wrong = (
        Payload(arrays={"pixels": Array.of(np.zeros((1, 8, 8, 3), np.float32))}),
        Payload(arrays={"pixels": Array.of(np.zeros((8, 8, 3), np.uint8))}),
        Payload(arrays={"pixels": Array.of(np.zeros((1, 0, 8, 3), np.uint8))}),
    )
    return GenerationSamples(parameters=Development(format="mp4"), sequences=sequences, wrong=wrong)


def _upload(seed: int, format: StillFormat) -> Payload:
    arrays = {"image": _bytes(_drawn(seed, format)), "mask": _bytes(_drawn(seed + 1, "png"))}
    return Payload("a prompt", arrays, {"kept": seed})


def _drawn(seed: int, format: StillFormat) -> bytes:
    return still(_frames(seed, 1)[0], format, quality=90)


def _frames(seed: int, count: int):
    return np.random.default_rng(seed).integers(0, 256, (count, 20, 24, 3), np.uint8)


def _bytes(file: bytes) -> Array:
    return Array.of(np.frombuffer(file, np.uint8))
