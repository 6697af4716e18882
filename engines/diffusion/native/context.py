"""Rolling context: the last frames, latents or actions of a session."""

from dataclasses import dataclass, replace
from typing import Self

import torch
from torch import Tensor

from engines.diffusion.native.parts import blank_of, own_copy


@dataclass(frozen=True, slots=True, eq=False)
class RollingContext:
    """The last `length` entries of those it has had, each a tensor of its own, so that what grows from it shares all but one.

    `blank` is an entry of zeros: its shape, type and device are those of all. Whole numbers are exact up to 2²⁴.
    """

    length: int
    blank: Tensor
    items: tuple[Tensor, ...] = ()
    seen: int = 0

    @classmethod
    def empty(cls, length: int, shape: tuple[int, ...], dtype: torch.dtype = torch.float32, device: str = "cpu") -> Self:
        """Raises ValueError."""
        if length < 1:
            raise ValueError(f"length: expected 1 or more, got {length}")
        return cls(length, blank_of(shape, dtype, device))

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.blank.shape)

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        return (self.blank, *self.items)

    def grown(self, item: Tensor) -> Self:
        """With a copy of `item` [*shape] as the newest. Raises ValueError."""
        if item.shape != self.blank.shape:
            raise ValueError(f"item: expected shape {self.shape}, got {tuple(item.shape)}")
        return replace(self, items=(*self.items, own_copy(item, self.blank))[-self.length :], seen=self.seen + 1)

    def entries(self) -> Tensor:
        return torch.stack(self.items) if self.items else self.blank.new_empty((0, *self.shape))

    def padded(self) -> Tensor:
        """[length, *shape], oldest first; zeros stand before a beginning."""
        return torch.stack([*[self.blank] * (self.length - len(self.items)), *self.items])

    def holding(self, entries: Tensor, seen: int) -> Self:
        if len(entries) != min(seen, self.length):
            raise ValueError(f"expected {min(seen, self.length)} entries of {seen} seen, got {len(entries)}")
        return replace(self, items=tuple(own_copy(entry, self.blank) for entry in entries), seen=seen)
