"""How a pipeline puts prompts of unequal length into one call, learned from its call for two of them beside those for each."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias, cast

import torch

from engines.diffusion.pipelines.roles import DEEPEST, Path, is_mapping, is_record, is_sequence, parts


@dataclass(slots=True, frozen=True)
class Filled:
    """An argument [rows, length, …] is made longer with `value`."""

    value: bool | int | float


@dataclass(slots=True, frozen=True)
class Masked:
    """An argument [rows, length] that is None where nothing was filled in, and else says `inside` and `outside`."""

    inside: bool | int | float
    outside: bool | int | float
    dtype: torch.dtype


Padding: TypeAlias = dict[Path, Filled | Masked]


def learn_padding(padding: Padding, path: Path, short: object, long: object, both: object) -> None:
    """Enter what differs in length. `both` is the call with `short` in its first row or rows and `long` in its last."""
    if isinstance(both, torch.Tensor):
        found = _padding(short, long, both)
        if found is not None:
            padding[path] = found
    elif len(path) < DEEPEST and (is_sequence(both) or is_mapping(both) or is_record(both)):
        shorts, longs, boths = (dict(parts(value)) for value in (short, long, both))
        if shorts.keys() == longs.keys() == boths.keys():
            for key, part in boths.items():
                learn_padding(padding, (*path, key), shorts[key], longs[key], part)


def _padding(short: object, long: object, both: torch.Tensor) -> Filled | Masked | None:
    if short is None and long is None and both.ndim == 2 and both.numel() and not torch.equal(both[0], both[-1]):
        return Masked(both[-1, 0].item(), both[0, -1].item(), both.dtype)
    if not (isinstance(short, torch.Tensor) and isinstance(long, torch.Tensor) and both.ndim > 1):
        return None
    is_longer = short.shape[1] < long.shape[1] == both.shape[1] and short.shape[2:] == long.shape[2:] == both.shape[2:]
    filled = both[0, short.shape[1] :] if is_longer else both[0, :0]
    return Filled(filled.reshape(-1)[0].item()) if filled.numel() and bool((filled == filled.reshape(-1)[0]).all()) else None


def padded(values: Sequence[object], rows: Sequence[int], lengths: Sequence[int], rule: Filled | Masked) -> torch.Tensor | None:
    """One argument of several calls, as long as the longest."""
    longest = max(lengths)
    if isinstance(rule, Masked):
        if all(value is None for value in values) and min(lengths) == longest:
            return None
        device = next((value.device for value in values if isinstance(value, torch.Tensor)), None)
        values = [
            torch.full((count, length), rule.inside, dtype=rule.dtype, device=device) if value is None else value
            for value, count, length in zip(values, rows, lengths, strict=True)
        ]
    fill = rule.outside if isinstance(rule, Masked) else rule.value
    return torch.cat([_longer(cast("torch.Tensor", value), longest, fill) for value in values])


def _longer(value: torch.Tensor, longest: int, fill: bool | int | float) -> torch.Tensor:
    rows, length, *others = value.shape
    return torch.cat([value, value.new_full((rows, longest - length, *others), fill)], dim=1) if length < longest else value
