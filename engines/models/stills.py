"""One picture as a file."""

from io import BytesIO
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from PIL import Image

Pixels: TypeAlias = NDArray[np.uint8]
StillFormat: TypeAlias = Literal["png", "jpeg", "webp"]

PNG_EFFORT = 3
"""Of zlib, 1 to 9. A photograph-like picture of 1024 × 1024: 2 % larger than with 6, in half the time."""
WEBP_EFFORT = 2
"""0 to 6, likewise."""


def still(picture: Pixels, format: StillFormat, quality: int) -> bytes:
    """`picture` is RGB [h, w, 3]. `quality` from 0 to 100 is what JPEG and WebP keep; at 100 both still lose a little."""
    image = Image.fromarray(picture)
    file = BytesIO()
    match format:
        case "png":
            image.save(file, "PNG", compress_level=PNG_EFFORT)
        case "jpeg":
            image.save(file, "JPEG", quality=quality, subsampling=0 if quality >= 90 else 2)
        case "webp":
            image.save(file, "WEBP", quality=quality, method=WEBP_EFFORT)
    return file.getvalue()
