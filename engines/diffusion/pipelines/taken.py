"""What a pipeline takes: the parameters of its `__call__`, and the sizes that its networks need."""

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, cast

from engines.diffusion.pipelines.run import Pipeline

SIZE_FACTORS = ("vae_scale_factor", "vae_scale_factor_spatial", "vae_spatial_compression_ratio")
FRAME_FACTORS = ("vae_scale_factor_temporal", "vae_temporal_compression_ratio")
"""What pipelines call the factors by which their VAE shrinks."""


@dataclass(slots=True, frozen=True)
class Taken:
    """`names` are those of its `__call__`. Width and height are multiples of `size_unit`, frames of `frame_unit` with one more.

    `guidance` is the parameter that steers by a negative prompt, or by a scale that the network was trained with
    (`is_distilled`); None when there is neither.
    """

    names: frozenset[str]
    default_steps: int
    size_unit: int
    frame_unit: int
    guidance: Literal["guidance_scale", "true_cfg_scale"] | None
    is_distilled: bool

    @property
    def makes_films(self) -> bool:
        return "num_frames" in self.names


def taken(pipeline: Pipeline) -> Taken:
    parameters = inspect.signature(type(pipeline).__call__).parameters
    names = frozenset(parameters)
    is_distilled = any(_config(part).get("guidance_embeds") is True for part in pipeline.components.values())
    steps = parameters["num_inference_steps"].default if "num_inference_steps" in names else 1
    return Taken(
        names=names,
        default_steps=steps if isinstance(steps, int) else 50,
        size_unit=_size_unit(pipeline),
        frame_unit=_first(vars(pipeline), FRAME_FACTORS, 1),
        guidance=_guidance(names, is_distilled),
        is_distilled=is_distilled,
    )


def _guidance(names: frozenset[str], is_distilled: bool) -> Literal["guidance_scale", "true_cfg_scale"] | None:
    if "true_cfg_scale" in names and not is_distilled:
        return "true_cfg_scale"
    return "guidance_scale" if "guidance_scale" in names else None


def _size_unit(pipeline: Pipeline) -> int:
    """Pixels: what the VAE shrinks by, times the patches of the denoiser, or times those that the pipeline packs."""
    own = vars(pipeline)
    vae = _first(own, SIZE_FACTORS, 8)
    denoisers = [part for part in pipeline.components.values() if not hasattr(part, "decode")]
    patch = max((_patch(_config(part)) for part in denoisers), default=1)
    packed = [_config(own.get(name)).get("vae_scale_factor", 1) for name in ("image_processor", "video_processor")]
    return max(vae * patch, *cast("list[int]", packed))


def _first(own: Mapping[str, object], names: Sequence[str], otherwise: int) -> int:
    return next((value for name in names if isinstance(value := own.get(name), int)), otherwise)


def _patch(config: Mapping[str, object]) -> int:
    size = config.get("patch_size", 1)
    if isinstance(size, list | tuple):
        size = cast("tuple[object, ...]", size)[-1]
    return size if isinstance(size, int) and "in_channels" in config else 1


def _config(part: object) -> Mapping[str, object]:
    """Of a component of diffusers; those of transformers keep objects there."""
    return cast("Mapping[str, object]", vars(part).get("_internal_dict", {})) if hasattr(part, "__dict__") else {}
