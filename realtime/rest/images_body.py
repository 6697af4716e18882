"""What `/v1/images/generations` and `/v1/images/edits` take. What OpenAI's API knows and this server cannot do is refused, not
ignored."""

from typing import Annotated, Literal, TypeAlias, cast

import msgspec
from msgspec.structs import replace

from engines.parameters import Development, Picture
from realtime.errors import Invalid
from realtime.rest.picture_wish import SEEDS, PictureFields

StillFormat: TypeAlias = Literal["png", "jpeg", "webp"]

STILL_FORMATS = ("png", "jpeg", "webp")
WHOLE_QUALITY = 100
MOST_PICTURES = 10
MOST_PREVIEWS = 3
"""OpenAI's limits."""
_NOT_HERE = {
    "frame_count": "pictures that move are films, and POST /v1/videos makes them",
    "frame_duration_ms": "pictures that move are films, and POST /v1/videos makes them",
    "num_images_per_prompt": "it is called `n` here",
    "svg": "models here paint in pixels",
    "style": "the prompt says it",
    "complexity": "`steps` says how long is painted",
    "input_fidelity": "`strength` says how much is painted anew",
    "markup": "what is to be painted anew is in `mask`",
}


class ImagesBody(PictureFields, frozen=True, kw_only=True):
    """`user`, `safety_identifier` and `moderation` mean nothing here: nobody reads along."""

    n: Annotated[int, msgspec.Meta(ge=1, le=MOST_PICTURES)] | None = None
    output_format: str | None = None
    output_compression: Annotated[int, msgspec.Meta(ge=0, le=100)] | None = None
    response_format: str | None = None
    stream: bool | None = None
    partial_images: Annotated[int, msgspec.Meta(ge=0, le=MOST_PREVIEWS)] | None = None
    background: str | None = None
    quality: str | None = None
    frame_count: object = None
    frame_duration_ms: object = None
    num_images_per_prompt: object = None
    svg: object = None
    style: object = None
    complexity: object = None
    input_fidelity: object = None
    markup: object = None

    @property
    def count(self) -> int:
        return self.n or 1

    @property
    def wants_urls(self) -> bool:
        return self.response_format == "url"

    @property
    def format(self) -> StillFormat:
        return cast(StillFormat, self.output_format or "png")

    def pictures(self) -> tuple[Picture, ...]:
        """One for each that is to be painted: their seeds follow one another. Raises Refusal."""
        self._check()
        first = self.picture(previews=self.partial_images or 0)
        return tuple(replace(first, seed=(first.seed + number) % SEEDS) for number in range(self.count))

    def development(self) -> Development:
        quality = WHOLE_QUALITY if self.output_compression is None else self.output_compression
        return Development(format=self.format, quality=quality, as_base64=not self.wants_urls)

    def _check(self) -> None:
        """Raises Refusal."""
        _one_of("output_format", self.output_format, STILL_FORMATS)
        _one_of("response_format", self.response_format, ("b64_json", "url"))
        if self.format == "png" and self.output_compression not in (None, WHOLE_QUALITY):
            raise Invalid("output_compression", "none, or 100, with png, which loses nothing", self.output_compression)
        _one_of("background", self.background, ("opaque", "auto"), "; pictures here have no transparency")
        _one_of("quality", self.quality, ("auto", "standard"), "; `steps` says how long is painted")
        for field, reason in _NOT_HERE.items():
            if (value := msgspec.structs.asdict(self)[field]) is not None:
                raise Invalid(field, f"nothing ({reason})", value)
        self._check_stream()

    def _check_stream(self) -> None:
        """Raises Refusal."""
        if self.stream and self.count > 1:
            raise Invalid("n", "1 with stream", self.n)
        if self.stream and self.wants_urls:
            raise Invalid("response_format", "'b64_json' with stream", self.response_format)
        if self.partial_images and not self.stream:
            raise Invalid("partial_images", "0 without stream", self.partial_images)


def _one_of(field: str, value: str | None, known: tuple[str, ...], reason: str = "") -> None:
    if value is not None and value not in known:
        raise Invalid(field, f"{' or '.join(map(repr, known))}{reason}", value)
