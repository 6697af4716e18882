"""A request's parameters and input as arguments of a pipeline's `__call__`, checked against what it takes and the deployment
allows."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray
from PIL.Image import Image

from engines.diffusion.pipelines.pixels import picture
from engines.diffusion.pipelines.taken import Taken
from engines.models import InvalidInput
from engines.models.options import DiffusersOptions
from engines.parameters import Picture
from engines.payloads import Payload

LARGEST_SEED = 2**63 - 1
LARGEST_GUIDANCE = 1_000.0


@dataclass(slots=True, frozen=True)
class Asked:
    """For `Served.begin`."""

    arguments: dict[str, object]
    steps: int


def fitted(wanted: Picture, takes: Taken) -> Picture:
    """With as many frames as the pipeline can make, where it is to be about so many; more than one all the same."""
    if wanted.frames is None or not wanted.about_frames:
        return wanted
    units = max(round((wanted.frames - 1) / takes.frame_unit), 1)
    return replace(wanted, frames=units * takes.frame_unit + 1, about_frames=False)


def check(wanted: Picture, takes: Taken, options: DiffusersOptions) -> None:
    """Raises InvalidInput."""
    if wanted.steps is not None:
        _within("steps", wanted.steps, 1, options.max_steps)
    for name, size in (("width", wanted.width), ("height", wanted.height)):
        if size is not None:
            _check_size(name, size, takes, options)
    if wanted.width is not None and wanted.height is not None:
        _check_area(wanted.width, wanted.height, options)
    _check_frames(wanted.frames, takes, options)
    _check_guidance(wanted, takes)
    _within("seed", wanted.seed, 0, LARGEST_SEED)
    _within("previews", wanted.previews, 0, options.max_previews)
    _check_prompt("negative_prompt", wanted.negative_prompt or "", options)
    if wanted.strength is not None and not (math.isfinite(wanted.strength) and 0 < wanted.strength <= 1):
        raise InvalidInput(f"strength: expected more than 0 and at most 1, got {wanted.strength}")
    if wanted.strength is not None and "strength" not in takes.names:
        raise InvalidInput(f"strength: expected none where no picture is given, or none can be, got {wanted.strength}")


def asked(wanted: Picture, payload: Payload, takes: Taken, options: DiffusersOptions) -> Asked:
    """Of parameters that `check` passed. Raises InvalidInput."""
    arguments: dict[str, object] = {"output_type": "np", **options.arguments, **prompts(wanted, payload, takes, options)}
    pictures = _pictures(payload, takes, options)
    arguments.update(pictures)
    arguments.update(_sizes(wanted, pictures, takes))
    steps = wanted.steps or takes.default_steps
    for name, value in (("num_inference_steps", steps), ("strength", wanted.strength), ("num_frames", wanted.frames)):
        if value is not None and name in takes.names:
            arguments[name] = value
    return Asked(arguments, steps)


def prompts(wanted: Picture, payload: Payload, takes: Taken, options: DiffusersOptions) -> dict[str, object]:
    """What of the arguments a new prompt changes. Raises InvalidInput."""
    _check_prompt("prompt", payload.text, options)
    arguments: dict[str, object] = {"prompt": payload.text} if "prompt" in takes.names else {}
    if "negative_prompt" in takes.names and wanted.negative_prompt is not None:
        arguments["negative_prompt"] = wanted.negative_prompt
    if takes.guidance is not None and wanted.guidance is not None:
        arguments[takes.guidance] = wanted.guidance
    if takes.guidance == "true_cfg_scale":
        arguments.setdefault("negative_prompt", " ")  # without one these pipelines do not steer at all
    return arguments


def _within(name: str, value: int, least: int, most: int) -> None:
    if not least <= value <= most:
        raise InvalidInput(f"{name}: expected {least} to {most}, got {value}")


def _check_prompt(name: str, text: str, options: DiffusersOptions) -> None:
    if len(text) > options.max_prompt_chars:
        raise InvalidInput(f"{name}: expected at most {options.max_prompt_chars} characters, got {len(text)}")


def _check_size(name: str, size: int, takes: Taken, options: DiffusersOptions) -> None:
    if size < takes.size_unit or size % takes.size_unit:
        raise InvalidInput(f"{name}: expected a multiple of {takes.size_unit} pixels, got {size}")
    if size > options.max_pixels:
        raise InvalidInput(f"{name}: expected at most {options.max_pixels} pixels in all, got {size} in a row")


def _check_area(width: int, height: int, options: DiffusersOptions) -> None:
    if width * height > options.max_pixels:
        raise InvalidInput(
            f"width, height: expected at most {options.max_pixels} pixels, got {width} × {height} = {width * height}"
        )


def _check_frames(frames: int | None, takes: Taken, options: DiffusersOptions) -> None:
    if frames is None:
        return
    if not takes.makes_films:
        if frames != 1:
            raise InvalidInput(f"frames: expected 1 from a pipeline that makes pictures, got {frames}")
        return
    _within("frames", frames, 1, options.max_frames)
    if (frames - 1) % takes.frame_unit:
        raise InvalidInput(f"frames: expected one more than a multiple of {takes.frame_unit}, got {frames}")


def _check_guidance(wanted: Picture, takes: Taken) -> None:
    guidance = wanted.guidance
    if guidance is not None:
        if takes.guidance is None:
            raise InvalidInput(f"guidance: expected none, since this pipeline cannot be steered, got {guidance}")
        if not (math.isfinite(guidance) and 0 <= guidance <= LARGEST_GUIDANCE):
            raise InvalidInput(f"guidance: expected 0 to {LARGEST_GUIDANCE:.0f}, got {guidance}")
    if wanted.negative_prompt and ("negative_prompt" not in takes.names or takes.is_distilled):
        raise InvalidInput(f"negative_prompt: expected none, since this pipeline takes none, got {wanted.negative_prompt[:40]!r}")


def _pictures(payload: Payload, takes: Taken, options: DiffusersOptions) -> dict[str, Image]:
    if unknown := sorted(set(payload.arrays) - {"image", "mask"}):
        raise InvalidInput(f"{unknown[0][:40]}: expected no more than one image and one mask, got another")
    given: dict[str, Image] = {}
    for name, parameter, channels in (("image", "image", (3,)), ("mask", "mask_image", ())):
        if name not in payload.arrays:
            continue
        if parameter not in takes.names:
            raise InvalidInput(f"{name}: expected none, since this pipeline takes none, got one")
        given[parameter] = picture(_pixels(name, payload, channels, takes, options))
    if "mask_image" in given and ("image" not in given or given["image"].size != given["mask_image"].size):
        got = f"{given['image'].size} and {given['mask_image'].size}" if "image" in given else "only a mask"
        raise InvalidInput(f"mask: expected an image and a mask of its size, got {got}")
    return given


def _pixels(name: str, payload: Payload, channels: tuple[int, ...], takes: Taken, options: DiffusersOptions) -> NDArray[np.uint8]:
    array = payload.arrays[name].numpy()
    if array.dtype != np.uint8 or array.ndim != 2 + len(channels) or array.shape[2:] != channels:
        wanted = "[height, width, 3]" if channels else "[height, width]"
        raise InvalidInput(f"{name}: expected uint8 of shape {wanted}, got {array.dtype} of shape {list(array.shape)}")
    height, width = array.shape[:2]
    for side, size in (("width", width), ("height", height)):
        _check_size(f"{name} {side}", size, takes, options)
    _check_area(width, height, options)
    return array.astype(np.uint8, copy=False)


def _sizes(wanted: Picture, pictures: Mapping[str, Image], takes: Taken) -> dict[str, object]:
    """A picture given decides, where the parameters say nothing."""
    width, height = wanted.width, wanted.height
    if "image" in pictures:
        own = pictures["image"].size
        width, height = width or own[0], height or own[1]
        if "width" not in takes.names and (width, height) != own:
            raise InvalidInput(f"width, height: expected those of the image, {own[0]} × {own[1]}, got {width} × {height}")
    sizes = {"width": width, "height": height}
    return {name: size for name, size in sizes.items() if size is not None and name in takes.names}
