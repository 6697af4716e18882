"""The arguments that a pipeline is tried with."""

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from engines.diffusion.pipelines.pixels import picture
from engines.diffusion.pipelines.taken import Taken
from engines.models.options import DiffusersOptions

TRIED_STEPS = 2
SIDE_UNITS = 8
"""A denoiser halves its latents three times at most, and has to have something left of them."""

Trial: TypeAlias = Callable[[Sequence[str], int], dict[str, object]]
"""The arguments for these prompts, with so many pictures for each of those that the pipeline takes: a small picture, two
steps."""


def trials(takes: Taken, options: DiffusersOptions) -> list[Trial]:
    """Small, and, for pipelines that cannot, of their own size."""
    return [_trial(takes, options, is_small=is_small) for is_small in (True, False)]


def _trial(takes: Taken, options: DiffusersOptions, *, is_small: bool) -> Trial:
    side = SIDE_UNITS * takes.size_unit
    noise = np.random.default_rng(0).integers(0, 256, (side, side, 3), np.uint8)
    possible: dict[str, object] = {"num_inference_steps": TRIED_STEPS, "strength": 1.0}
    if is_small:
        possible |= {"width": side, "height": side, "num_frames": takes.frame_unit + 1}
    pictures = {"image": picture(noise), "mask_image": picture(np.where(noise[..., 0] > 127, 255, 0).astype(np.uint8))}

    def arguments(prompts: Sequence[str], copies: int) -> dict[str, object]:
        given = {name: value for name, value in possible.items() if name in takes.names}
        given |= {name: _one_or_list([value] * copies) for name, value in pictures.items() if name in takes.names}
        if "prompt" in takes.names:
            given["prompt"] = _one_or_list(prompts)
        if takes.guidance == "true_cfg_scale":
            given["negative_prompt"] = _one_or_list([" "] * len(prompts))
        return {"output_type": "np", **options.arguments, **given}

    return arguments


def _one_or_list(values: Sequence[object]) -> object:
    return values[0] if len(values) == 1 else list(values)
