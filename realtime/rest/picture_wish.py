"""What clients say of a picture or a film that they want: the fields that images and videos have in common."""

import re
import secrets
from typing import Annotated

import msgspec

from engines.parameters import Picture
from realtime.blank import is_blank
from realtime.errors import Invalid

MAX_PROMPT_CHARACTERS = 32_000
"""OpenAI's limit."""
MAX_SAMPLER_CHARACTERS = 64
"""Of a name."""
LEAST_SIDE, MOST_SIDE, MOST_PIXELS = 16, 8_192, 8 << 20
"""Of a size. So many pixels of three bytes each fit into the ring of a worker."""
MOST_STEPS = 1_000
SEEDS = 2**63
_CALLED_HERE = {
    "num_inference_steps": "steps",
    "guidance_scale": "guidance",
    "true_cfg_scale": "guidance",
    "width": "size",
    "height": "size",
}
"""The names that diffusers has for the same: who sends them should not get something else in silence."""
_SIZE = re.compile(r"([1-9][0-9]{0,5})x([1-9][0-9]{0,5})", re.ASCII)


class PictureFields(msgspec.Struct, frozen=True, kw_only=True):
    """`size` is "WIDTHxHEIGHT", or "auto": as the model likes it. From `steps` on they are ours: stock clients send them as
    `extra_body`. None: what the model takes. Without a `seed` each picture is another."""

    prompt: str
    model: str | None = None
    size: str | None = None
    steps: Annotated[int, msgspec.Meta(ge=1, le=MOST_STEPS)] | None = None
    guidance: Annotated[float, msgspec.Meta(ge=0, le=100)] | None = None
    seed: Annotated[int, msgspec.Meta(ge=0, le=SEEDS - 1)] | None = None
    negative_prompt: str | None = None
    sampler: Annotated[str, msgspec.Meta(max_length=MAX_SAMPLER_CHARACTERS)] | None = None
    strength: Annotated[float, msgspec.Meta(gt=0, le=1)] | None = None
    num_inference_steps: object = None
    guidance_scale: object = None
    true_cfg_scale: object = None
    width: object = None
    height: object = None

    def picture(self, frames: int | None = None, previews: int = 0, *, about_frames: bool = False) -> Picture:
        """As the painter takes it. Raises Invalid."""
        for field, here in _CALLED_HERE.items():
            if (value := msgspec.structs.asdict(self)[field]) is not None:
                raise Invalid(field, f"nothing (it is called `{here}` here)", value)
        _check_prompt("prompt", self.prompt)
        if self.negative_prompt is not None:
            _check_length("negative_prompt", self.negative_prompt)
        width, height = sides(self.size)
        return Picture(
            width=width,
            height=height,
            frames=frames,
            steps=self.steps,
            guidance=self.guidance,
            negative_prompt=self.negative_prompt,
            sampler=self.sampler or "",
            seed=secrets.randbelow(SEEDS) if self.seed is None else self.seed,
            strength=self.strength,
            previews=previews,
            about_frames=about_frames,
        )


def sides(size: str | None) -> tuple[int | None, int | None]:
    """Width and height in pixels; None where the model is to choose. What it can paint it tells itself. Raises Invalid."""
    if size is None or size == "auto":
        return None, None
    if (given := _SIZE.fullmatch(size)) is None:
        raise Invalid("size", "'auto' or 'WIDTHxHEIGHT' in pixels, such as '1024x768'", size)
    width, height = int(given[1]), int(given[2])
    if not all(LEAST_SIDE <= side <= MOST_SIDE for side in (width, height)):
        raise Invalid("size", f"{LEAST_SIDE} to {MOST_SIDE} pixels a side", size)
    if width * height > MOST_PIXELS:
        raise Invalid("size", f"at most {MOST_PIXELS} pixels", size)
    return width, height


def _check_prompt(field: str, prompt: str) -> None:
    _check_length(field, prompt)
    if is_blank(prompt):
        raise Invalid(field, "what to paint", prompt)


def _check_length(field: str, text: str) -> None:
    if len(text) > MAX_PROMPT_CHARACTERS:
        raise Invalid(field, f"at most {MAX_PROMPT_CHARACTERS} characters", f"{len(text)} characters")
