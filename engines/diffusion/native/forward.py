"""One forward for rows of several jobs, each at its own level, padded to a fixed number where equal results are promised."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic

import torch
from torch import Tensor

from engines.diffusion.native import Cond, Content, StepModel
from engines.diffusion.native.guides import Guide


@dataclass(frozen=True, slots=True)
class Row(Generic[Content, Cond]):
    """`x` [*shape] becomes the network's by `scale`; `level` is in the network's parametrisation already."""

    x: Tensor
    scale: float
    level: float
    cond: Cond
    content: Content
    guide: Guide | None


def predictions(model: StepModel[Content, Cond], rows: Sequence[Row[Content, Cond]], pad_to: int) -> list[Tensor]:
    """Clean values row by row. `pad_to` more than 0 is how many rows every forward has: a sum over a row is then rounded the same
    way whatever else is there, which it is not in batches of different sizes."""
    size = pad_to or len(rows)
    found: list[Tensor] = []
    for first in range(0, len(rows), size):
        found += _forward(model, rows[first : first + size], size)
    return found


def _forward(model: StepModel[Content, Cond], rows: Sequence[Row[Content, Cond]], size: int) -> list[Tensor]:
    """Of the first rows in a batch of `size`; what is lacking is filled with copies of the last one."""
    batch = [*rows, *[rows[-1]] * (size - len(rows))]
    own = torch.stack([row.x for row in batch])
    numbers = [row.level for row in batch], [row.scale for row in batch]
    t, scale = torch.tensor(numbers, dtype=torch.float32, device=own.device)
    x = own * scale.reshape(-1, *[1] * (own.dim() - 1))
    guides = [row.guide for row in batch]
    with torch.set_grad_enabled(any(guide is not None and guide.with_gradient for guide in guides)):
        x.requires_grad_(torch.is_grad_enabled())
        clean = model.denoise(x, t, [row.cond for row in batch], [row.content for row in batch])
        _check("denoise", clean, x)
        pulled = _pulled(batch, x, clean) if x.requires_grad else None
    x, clean = x.detach(), clean.detach()
    return [_guided(row, x[at], clean[at], None if pulled is None else pulled[at]) for at, row in enumerate(rows)]


def _pulled(batch: Sequence[Row[Content, Cond]], x: Tensor, clean: Tensor) -> Tensor:
    """Row by row vectorᵀ · ∂clean/∂x: rows do not depend on each other, so one backward pass does for all of them."""
    with torch.no_grad():
        vectors = torch.zeros_like(clean)
        for at, row in enumerate(batch):
            if row.guide is not None and row.guide.with_gradient:
                vectors[at] = row.guide.vector(x[at], row.level, clean[at])
    return torch.autograd.grad(clean, x, vectors)[0]


def _guided(row: Row[Content, Cond], x: Tensor, clean: Tensor, pulled: Tensor | None) -> Tensor:
    if row.guide is None:
        return clean
    guided = row.guide.guided(x, row.level, clean, pulled)
    _check("guided", guided, clean)
    return guided


def _check(what: str, clean: Tensor, x: Tensor) -> None:
    if clean.shape != x.shape or clean.dtype != x.dtype or clean.device != x.device:
        expected, got = (f"{each.dtype} of shape {tuple(each.shape)} on {each.device}" for each in (x, clean))
        raise RuntimeError(f"{what}: expected clean values as {expected}, got {got}")
