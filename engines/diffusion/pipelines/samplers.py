"""The samplers that a request may name: schedulers of diffusers, made from the config of the pipeline's own."""

from typing import cast

from diffusers.configuration_utils import ConfigMixin
from diffusers.schedulers.scheduling_utils import SchedulerMixin

from engines.models import InvalidInput

SAMPLERS = {
    "ddim": "DDIMScheduler",
    "ddpm": "DDPMScheduler",
    "dpm++": "DPMSolverMultistepScheduler",
    "euler": "EulerDiscreteScheduler",
    "euler_ancestral": "EulerAncestralDiscreteScheduler",
    "heun": "HeunDiscreteScheduler",
    "lcm": "LCMScheduler",
    "pndm": "PNDMScheduler",
    "unipc": "UniPCMultistepScheduler",
    "flow_euler": "FlowMatchEulerDiscreteScheduler",
}


def sampler(name: str, own: object) -> object:
    """`own`, the pipeline's, for an empty name. Raises InvalidInput for one that there is not, or that this pipeline's config
    does not suit."""
    if not name or not isinstance(own, SchedulerMixin):
        return own
    suitable = {kind.__name__: kind for kind in [type(own), *own.compatibles]}
    kind = suitable.get(SAMPLERS.get(name, ""))
    if kind is None:
        names = [known for known, wanted in SAMPLERS.items() if wanted in suitable]
        raise InvalidInput(f"sampler: expected one of {', '.join(names) or 'none but the default'}, got {name[:40]!r}")
    return cast(object, cast(ConfigMixin, kind).from_config(cast(ConfigMixin, own).config))  # pyright: ignore[reportUnknownMemberType]  untyped there


def name_of(chosen: object) -> str:
    """Of what `sampler` returned."""
    kind = type(chosen).__name__
    return next((name for name, wanted in SAMPLERS.items() if wanted == kind), kind)
