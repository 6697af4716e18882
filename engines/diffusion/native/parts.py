"""What a session's content is made of. Parts are values: to change one is to make another, which shares with it what stays.

So a fork costs nothing until it goes another way, an abort has nothing to undo, and an older content is a place to go back to.
"""

from collections.abc import Iterable
from typing import Protocol, Self, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor


class Part(Protocol):
    @property
    def tensors(self) -> tuple[Tensor, ...]:
        """Its memory. Never written."""
        ...

    @property
    def shape(self) -> tuple[int, ...]:
        """Of one of its entries."""
        ...

    @property
    def seen(self) -> int:
        """How many entries it has ever had."""
        ...

    def entries(self) -> Tensor:
        """Those it still has, [n, *shape], oldest first."""
        ...

    def holding(self, entries: Tensor, seen: int) -> Self:
        """One like this with these [n, *shape] in place of its own. Raises ValueError where that cannot be."""
        ...


def own_copy(values: Tensor, like: Tensor) -> Tensor:
    """In memory of its own, of the type and on the device of `like`: of what it was copied from nothing is kept, and it takes up
    just its own bytes. Never a tensor of inference mode, of which nobody could tell whether it was written."""
    with torch.inference_mode(mode=False):
        return values.detach().to(like.device, like.dtype, copy=True, memory_format=torch.contiguous_format).data


def blank_of(shape: tuple[int, ...], dtype: torch.dtype, device: str) -> Tensor:
    """Zeros, to be kept. Raises ValueError for a type that a snapshot cannot hold."""
    with torch.inference_mode(mode=False):
        blank = torch.zeros(shape, dtype=dtype, device=device)
    if not blank.is_floating_point() or blank.element_size() > 4:  # a snapshot has float32 alone, which holds the narrower types
        raise ValueError(f"dtype: expected float32 or a narrower floating type, got {dtype}")
    return blank


def floats(values: Tensor) -> NDArray[np.float32]:
    return cast(NDArray[np.float32], values.detach().to("cpu", torch.float32).numpy())


def was_written(tensors: Iterable[Tensor]) -> bool:
    """Whether torch has changed one of them since it was made: it counts that, also through views."""
    return any(tensor._version for tensor in tensors)  # pyright: ignore[reportPrivateUsage]  documented, though so named
