"""Uploaded pictures become pixels. Nothing that comes is trusted: what a file claims is compared with the limits before a pixel
is decoded, and whatever Pillow says of a broken one is the fault of the file."""

from collections.abc import Hashable, Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageFile, ImageOps
from PIL.PngImagePlugin import PngImageFile
from PIL.WebPImagePlugin import WebPImageFile

from engines.models import InvalidInput, Produced
from engines.models.options import PixelsOptions
from engines.models.stateless import Stateless
from engines.payloads import Array, Payload
from engines.worker.foreign import attempt

Pixels: TypeAlias = NDArray[np.uint8]

FORMATS = ("PNG", "JPEG", "WEBP")
"""Pillow reads forty more, each of which would be one more thing to attack."""
EXPECTED = "a picture as PNG, JPEG or WebP"
IMAGE, MASK = "image", "mask"
HIGHEST_16_BIT = 65_535
LONGEST_REASON = 120


class PixelsModel(Stateless):
    """Takes the bytes of files as arrays uint8 [n], each under the name of its field: `image`, `image[1]`, …, `mask`. Emits them
    as `image` uint8 [h, w, 3] (RGB, upright) and `mask` uint8 [h, w], 255 where to paint anew: what is transparent in the upload,
    or white when nothing can be. Text and attributes go along.

    A picture of more than its share of `kept_pixels` is made smaller, and its sides multiples of `side_unit`; the mask is treated
    like the picture that it belongs to, `image`.
    """

    units = "pictures"

    def __init__(self, options: PixelsOptions) -> None:
        self._options = options

    @classmethod
    def load(cls, directory: Path, options: dict[str, object]) -> "PixelsModel":
        """It has no files. Raises msgspec.ValidationError that names a wrong option."""
        return cls(msgspec.convert(options, PixelsOptions))

    def warm_up(self) -> None:
        Image.preinit()

    def batch_key(self, state: None, payload: Payload) -> Hashable:
        """Each alone: decoding is no faster for several, and a small one would wait for a large one."""
        return id(payload)

    def run(self, batch: Sequence[tuple[None, Payload]]) -> list[list[Produced] | InvalidInput]:
        return [self._answer(payload) for _, payload in batch]

    def _answer(self, payload: Payload) -> list[Produced] | InvalidInput:
        try:
            pixels = self._all_decoded(payload.arrays)
        except InvalidInput as wrong:
            return wrong
        arrays = {field: Array.of(values) for field, values in pixels.items()}
        return [Produced(Payload(payload.text, arrays, payload.attributes), units=len(arrays))]

    def _all_decoded(self, files: Mapping[str, Array]) -> dict[str, Pixels]:
        """Raises InvalidInput that names the field."""
        opened = {field: self._opened(field, file) for field, file in files.items()}
        if MASK in opened:
            _check_mask(opened)
        share = self._options.kept_pixels // max(1, len(opened) - (MASK in opened))
        return {field: self._pixels(field, picture, share) for field, picture in opened.items()}

    def _opened(self, field: str, file: Array) -> ImageFile.ImageFile:
        """Its head has been read, its pixels have not."""
        most_bytes, most_pixels = self._options.max_bytes, self._options.max_pixels
        if file.dtype != "uint8" or len(file.shape) != 1:
            raise InvalidInput(f"{field}: expected the bytes of a file, uint8 [n], got {file.dtype} {list(file.shape)}")
        if len(file.data) > most_bytes:
            raise InvalidInput(f"{field}: expected a file of at most {most_bytes} bytes, got {len(file.data)}")
        picture = attempt(_head, file.data)
        if isinstance(picture, Exception):
            raise _unreadable(field, picture, most_pixels)
        if picture.width * picture.height > most_pixels:
            got = f"{picture.width} x {picture.height}"
            raise InvalidInput(f"{field}: expected a picture of at most {most_pixels} pixels, got {got}")
        if (frames := _frames(picture)) > 1:
            raise InvalidInput(f"{field}: expected {EXPECTED} with one frame, got {frames} frames")
        return picture

    def _pixels(self, field: str, picture: Image.Image, most_pixels: int) -> Pixels:
        """Raises InvalidInput."""
        pixels = attempt(_decoded, picture, most_pixels, self._options.side_unit, is_mask=field == MASK)
        if isinstance(pixels, Exception):
            raise _unreadable(field, pixels, most_pixels)
        return pixels


def _head(file: memoryview) -> ImageFile.ImageFile:
    return Image.open(BytesIO(file), formats=FORMATS)


def _frames(picture: ImageFile.ImageFile) -> int:
    """The second picture in the file of many a photograph (MPO) is no frame."""
    return picture.n_frames if isinstance(picture, PngImageFile | WebPImageFile) else 1


def _unreadable(field: str, broken: Exception, most_pixels: int) -> InvalidInput:
    if isinstance(broken, Image.DecompressionBombError | Image.DecompressionBombWarning):
        return InvalidInput(f"{field}: expected a picture of at most {most_pixels} pixels, got far more")
    if isinstance(broken, Image.UnidentifiedImageError):
        return InvalidInput(f"{field}: expected {EXPECTED}, got something else")
    reason = " ".join(str(broken).split())[:LONGEST_REASON] or type(broken).__name__
    return InvalidInput(f"{field}: expected {EXPECTED}, got a broken one ({reason})")


def _check_mask(opened: Mapping[str, ImageFile.ImageFile]) -> None:
    """Raises InvalidInput."""
    mask, image = opened[MASK], opened.get(IMAGE)
    if image is None:
        raise InvalidInput(f"{IMAGE}: expected the picture that the mask belongs to, got none")
    if mask.size != image.size:
        expected, got = (f"{each.width} x {each.height}" for each in (image, mask))
        raise InvalidInput(f"{MASK}: expected the size of the picture, {expected}, got {got}")


def _decoded(picture: Image.Image, most_pixels: int, side_unit: int, *, is_mask: bool) -> Pixels:
    upright = ImageOps.exif_transpose(_eight_bit(picture))
    fitting = _fitting(_masked(upright) if is_mask else _flat(upright), most_pixels, side_unit)
    return np.array(fitting, np.uint8)


def _eight_bit(picture: Image.Image) -> Image.Image:
    """Of 16-bit grey Pillow would keep all above 255 as white."""
    if not picture.mode.startswith("I"):
        return picture
    values = np.clip(np.asarray(picture, np.int64), 0, HIGHEST_16_BIT)
    return Image.fromarray((values // 257).astype(np.uint8))


def _flat(picture: Image.Image) -> Image.Image:
    """What is transparent becomes white."""
    if not picture.has_transparency_data:
        return picture.convert("RGB")
    seen = picture.convert("RGBA")
    return Image.alpha_composite(Image.new("RGBA", seen.size, "white"), seen).convert("RGB")


def _masked(picture: Image.Image) -> Image.Image:
    if not picture.has_transparency_data:
        return picture.convert("L")
    return ImageOps.invert(picture.convert("RGBA").getchannel("A"))


def _fitting(picture: Image.Image, most_pixels: int, side_unit: int) -> Image.Image:
    scale = min(1.0, (most_pixels / (picture.width * picture.height)) ** 0.5)
    size = _side(picture.width * scale, side_unit), _side(picture.height * scale, side_unit)
    return picture if size == picture.size else picture.resize(size, Image.Resampling.LANCZOS, reducing_gap=2.0)


def _side(length: float, unit: int) -> int:
    return max(unit, int(length) // unit * unit)
