"""Samples for a painter of pictures that wants nothing but a prompt; one that also wants pictures needs samples of its own."""

from collections.abc import Mapping

import numpy as np

from engines.conformance.samples import GenerationSamples
from engines.parameters import Picture
from engines.payloads import Array, Payload

SIDE = 64
STEPS = 3
ONE_LEVEL = 1.0
"""Of 255: what a rounding may turn over."""


def prompts(options: Mapping[str, object]) -> GenerationSamples:
    sequences = (("a cat", "a dog on a boat"), ("a cow", "an old house"))
    wanted = Picture(width=SIDE, height=SIDE, steps=STEPS)
    return GenerationSamples(
        parameters=wanted,
        sequences=tuple(tuple(Payload(text) for text in texts) for texts in sequences),
        wrong=(
            Payload("a" * 1_000_000),
            Payload("a cat", arrays={"image": Array.of(np.zeros((SIDE, SIDE, 3), np.float32))}),
            Payload("a cat", arrays={"picture": Array.of(np.zeros((SIDE, SIDE, 3), np.uint8))}),
        ),
        refused=(
            Picture(steps=0),
            Picture(steps=1_000_000),
            Picture(width=SIDE + 1, height=SIDE),
            Picture(guidance=float("nan")),
            Picture(sampler="none of these"),
        ),
        reseeded=Picture(width=SIDE, height=SIDE, steps=STEPS, seed=1),
        tolerance=ONE_LEVEL,
    )
