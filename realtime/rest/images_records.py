"""What the image endpoints answer, in OpenAI's shape; `seed`, `metrics` and the count of pictures are ours."""

import msgspec
from msgspec import UNSET, UnsetType

from realtime.rest.images_body import StillFormat
from realtime.rest.picture_timing import PictureTiming


class NoTokens(msgspec.Struct, frozen=True):
    image_tokens: int = 0
    text_tokens: int = 0


class ImageUsage(msgspec.Struct, frozen=True, kw_only=True):
    """`pictures` is what is billed. Nothing here is counted in tokens, for which clients have fields."""

    pictures: int
    input_tokens: int = 0
    output_tokens: int = 0
    total_tokens: int = 0
    input_tokens_details: NoTokens = NoTokens()


class Image(msgspec.Struct, frozen=True, kw_only=True):
    b64_json: msgspec.Raw | UnsetType = UNSET
    url: str | UnsetType = UNSET
    seed: int


class ImagesHead(msgspec.Struct, frozen=True, kw_only=True):
    """An answer but for its `data`, the images."""

    created: int
    size: str
    output_format: StillFormat
    background: str = "opaque"
    usage: ImageUsage
    metrics: PictureTiming


class ImageEvent(msgspec.Struct, frozen=True, kw_only=True):
    type: str
    created_at: int
    b64_json: msgspec.Raw
    size: str
    output_format: StillFormat
    background: str = "opaque"
    quality: str = "auto"
    partial_image_index: int | UnsetType = UNSET
    usage: ImageUsage | UnsetType = UNSET
    seed: int | UnsetType = UNSET
    metrics: PictureTiming | UnsetType = UNSET


def as_json_text(base64: memoryview) -> msgspec.Raw:
    """Text that needs no escapes."""
    return msgspec.Raw(b'"%b"' % base64)
