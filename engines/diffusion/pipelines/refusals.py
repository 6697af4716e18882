"""What a pipeline raises before its first step is about what it was given: told by the name of the field."""

import inspect
from collections.abc import Mapping

from engines.diffusion.pipelines.run import Pipeline
from engines.diffusion.pipelines.samplers import name_of
from engines.models import InvalidInput

OF_SAMPLERS = (ValueError, TypeError, AttributeError, IndexError, NotImplementedError)
"""What comes of a scheduler that lacks what the pipeline, or its config, asks of it."""


def refusal(error: Exception, pipeline: Pipeline, arguments: Mapping[str, object], scheduler: object) -> Exception:
    """`error` itself where the request cannot be the cause. `scheduler`: the pipeline's own, or one that the request chose."""
    if isinstance(error, InvalidInput):
        return error
    if isinstance(error, ValueError) and (wrong := _too_few_steps(pipeline, arguments)):
        return InvalidInput(wrong)
    if scheduler is not pipeline.components["scheduler"] and isinstance(error, OF_SAMPLERS):
        expected = f"one that this pipeline can use for {arguments.get('num_inference_steps')} steps"
        return InvalidInput(f"sampler: expected {expected}, got {name_of(scheduler)!r} ({error})")
    if isinstance(error, ValueError):
        return InvalidInput(f"input: expected what this pipeline takes, got its refusal: {error}")
    return error


def _too_few_steps(pipeline: Pipeline, arguments: Mapping[str, object]) -> str:
    """Of a pipeline that paints anew with so much `strength`, less than one may be left of the steps."""
    parameters = inspect.signature(type(pipeline).__call__).parameters
    if "strength" not in parameters:
        return ""
    steps = arguments.get("num_inference_steps")
    strength = arguments.get("strength", parameters["strength"].default)
    if not isinstance(steps, int) or not isinstance(strength, int | float) or steps * strength >= 1:
        return ""
    if "strength" in arguments:
        return f"strength: expected so much that of {steps} steps one is left, got {strength}"
    return f"steps: expected so many that at the strength of {strength} one is left, got {steps}"
