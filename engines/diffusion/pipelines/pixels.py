"""What a pipeline returns as pixels, and pixels as what a pipeline takes."""

from collections.abc import Mapping
from typing import cast

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image


def values(result: object) -> NDArray[np.floating]:
    """[n, h, w, 3] from 0 to 1: the pictures, or the frames of the one film, that a pipeline returned for `output_type="np"`.

    Raises ValueError for anything else.
    """
    found = next(iter(cast("Mapping[str, object]", result).values())) if isinstance(result, Mapping) else result
    while isinstance(found, list | tuple) and len(cast("list[object]", found)) == 1:
        found = cast("list[object]", found)[0]
    array = np.asarray(found.float().cpu() if isinstance(found, torch.Tensor) else found)
    if array.ndim == 5 and array.shape[0] == 1:
        array = array[0]
    if array.ndim == 3:
        array = array[None]
    if array.ndim != 4 or array.shape[-1] != 3 or not np.issubdtype(array.dtype, np.floating):
        raise ValueError(
            f"the pipeline returned {array.dtype} of shape {array.shape}, and pictures are floats of shape [n, h, w, 3]"
        )
    return cast("NDArray[np.floating]", array)


def pixels(result: object) -> NDArray[np.uint8]:
    """The same as uint8. Raises ValueError, also for pictures with values that are no numbers."""
    found = values(result)
    if not np.isfinite(found).all():
        raise ValueError("the pipeline's picture has values that are no numbers; half precision may be too coarse for its VAE")
    return np.round(found.clip(0, 1) * 255).astype(np.uint8)


def picture(array: NDArray[np.uint8]) -> Image.Image:
    """Of [h, w, 3] or, for a mask, [h, w]. A copy."""
    return Image.fromarray(array.copy())
