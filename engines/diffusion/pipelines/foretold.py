"""The clean picture that a step foretold, in latents, for previews."""

from typing import cast

import torch

from engines.diffusion.pipelines.run import Stepped


def foretold(left: Stepped) -> torch.Tensor:
    """From what the scheduler says of it, or keeps of it; the latents as they are where it is not known how."""
    outcome = left.outcome
    if isinstance(outcome, tuple) and len(cast("tuple[object, ...]", outcome)) > 1:  # (next, clean): DDIM, Euler, LCM
        second = cast("tuple[object, ...]", outcome)[1]
        if isinstance(second, torch.Tensor) and second.shape == left.latents.shape:
            return second.to(left.latents.dtype)
    kind, kept = type(left.scheduler).__name__, vars(left.scheduler)
    if kind == "FlowMatchEulerDiscreteScheduler":
        sigma = cast("torch.Tensor", kept["sigmas"])[cast(int, kept["_step_index"]) - 1]
        return (left.sample.float() - sigma * left.model_output.float()).to(left.latents.dtype)
    if kind in ("DPMSolverMultistepScheduler", "UniPCMultistepScheduler") and _keeps_clean(left.scheduler):
        return cast("list[torch.Tensor]", kept["model_outputs"])[-1].to(left.latents.dtype)
    return left.latents


def _keeps_clean(scheduler: object) -> bool:
    """What these two keep of their steps is the clean picture, unless they are set to something older."""
    config = cast("dict[str, object]", scheduler.config)  # pyright: ignore[reportAttributeAccessIssue]  all schedulers have one
    return bool(config.get("predict_x0", True)) and config.get("algorithm_type", "dpmsolver++") in (
        "dpmsolver++",
        "sde-dpmsolver++",
    )
