"""Keys and values of attention that a session keeps: appended to, and seen through a window."""

from dataclasses import dataclass, replace
from typing import Self

import torch
from torch import Tensor

from engines.diffusion.native.parts import blank_of, own_copy


@dataclass(frozen=True, slots=True, eq=False)
class KeyValues:
    """Tokens in pages of `page` each, all full but the last. To append copies the last page and shares the others: with whole
    tensors a fork would copy everything at its first token, and with a tensor a token a session would have thousands.

    Choose `page` as what comes at once (the tokens of a frame) and nothing is ever copied twice. `blank` is a token of zeros, of
    the shape, type and device of all: (layers, 2, heads, channels), or as the network likes it. The last `window` tokens can be
    read; pages wholly before them are let go. 0: there is no window.
    """

    page: int
    window: int
    blank: Tensor
    pages: tuple[Tensor, ...] = ()
    seen: int = 0

    @classmethod
    def empty(
        cls, page: int, window: int, shape: tuple[int, ...], dtype: torch.dtype = torch.float32, device: str = "cpu"
    ) -> Self:
        """Raises ValueError."""
        if page < 1 or window < 0:
            raise ValueError(f"expected page ≥ 1 and window ≥ 0, got page={page}, window={window}")
        return cls(page, window, blank_of(shape, dtype, device))

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.blank.shape)

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        return (self.blank, *self.pages)

    def __len__(self) -> int:
        """How many tokens can be read."""
        return min(self.seen, self.window) if self.window else self.seen

    def appended(self, tokens: Tensor) -> Self:
        """With copies of `tokens` [n, *shape] after its own; n may be 0. Raises ValueError."""
        if tokens.dim() == 0 or tokens.shape[1:] != self.blank.shape:
            raise ValueError(f"tokens: expected shape (any, {', '.join(map(str, self.shape))}), got {tuple(tokens.shape)}")
        return self._with(tokens, self.seen + len(tokens))

    def entries(self) -> Tensor:
        """[len(self), *shape], oldest first."""
        if not self.pages:
            return self.blank.new_empty((0, *self.shape))
        held = torch.cat(self.pages)
        return held[len(held) - len(self) :]

    def holding(self, entries: Tensor, seen: int) -> Self:
        expected = min(seen, self.window) if self.window else seen
        if len(entries) != expected:
            raise ValueError(f"expected {expected} tokens of {seen} seen, got {len(entries)}")
        return replace(self, pages=(), seen=0)._with(entries, seen)

    def _with(self, tokens: Tensor, seen: int) -> Self:
        full = self.pages
        if full and len(full[-1]) < self.page and len(tokens):
            tokens = torch.cat([full[-1], tokens.to(self.blank)])
            full = full[:-1]
        fresh = tuple(own_copy(page, self.blank) for page in torch.split(tokens, self.page) if len(page))
        return replace(self, pages=self._in_sight((*full, *fresh)), seen=seen)

    def _in_sight(self, pages: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        held = sum(map(len, pages))
        first = 0
        while self.window and first < len(pages) and held - len(pages[first]) >= self.window:
            held -= len(pages[first])
            first += 1
        return pages[first:]
