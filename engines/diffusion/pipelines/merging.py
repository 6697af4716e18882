"""Several calls of equal keys as one: arguments put together along the batch axis, the output taken apart again."""

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, cast

import torch

from engines.diffusion.pipelines.calls import Call
from engines.diffusion.pipelines.padding import padded
from engines.diffusion.pipelines.roles import DEEPEST, Path, Role, Roles, is_mapping, is_record, is_sequence, parts
from engines.diffusion.pipelines.traits import Traits

Network: TypeAlias = Callable[..., object]
OUTPUT: Path = ("output",)


class NotSplit(ValueError):
    """An output has a part of which it is not known whose it is."""


@dataclass(slots=True, frozen=True)
class _Shares:
    """What each of the calls has of the whole."""

    rows: Sequence[int]
    lengths: Sequence[int]
    traits: Traits


def compute(network: Network, calls: Sequence[Call], traits: Traits) -> list[object]:
    """The outputs of `calls`, in order, by one call of `network`. Raises NotSplit, and what the network raises."""
    if len(calls) == 1:
        return [_apply(network, calls[0].arguments)]
    shares = _Shares([call.rows for call in calls], [call.length for call in calls], traits)
    merged = _merged((), [call.arguments for call in calls], shares)
    return _split(OUTPUT, _apply(network, cast("Mapping[str, object]", merged)), shares.rows, traits.roles)


def _apply(network: Network, arguments: Mapping[str, object]) -> object:
    return network(*cast("tuple[object, ...]", arguments["args"]), **cast("dict[str, object]", arguments["kwargs"]))


def _merged(path: Path, values: Sequence[object], shares: _Shares) -> object:
    first, role = values[0], shares.traits.roles.get(path)
    if path in shares.traits.padding:
        return padded(values, shares.rows, shares.lengths, shares.traits.padding[path])
    if isinstance(first, torch.Tensor):
        return _merged_tensors(cast("Sequence[torch.Tensor]", values), shares.rows, role)
    if is_sequence(first) and role is Role.ROWS:
        return [element for value in values for element in cast("list[object]", value)]
    if is_sequence(first) or is_mapping(first):
        within = [dict(parts(value)) for value in values]
        return _rebuilt(first, {key: _merged((*path, key), [part[key] for part in within], shares) for key in within[0]})
    return first


def _merged_tensors(values: Sequence[torch.Tensor], rows: Sequence[int], role: Role | None) -> torch.Tensor:
    if role is Role.ROWS:
        return torch.cat(list(values))
    if role is Role.SCALAR and values[0].ndim == 0:
        return torch.cat([value.expand(count) for value, count in zip(values, rows, strict=True)])
    return values[0]


def _split(path: Path, value: object, rows: Sequence[int], roles: Roles) -> list[object]:
    role = roles.get(path)
    if role is Role.FOREIGN:
        raise NotSplit(f"its output has a part, {path}, that does not grow with the batch as rows do")
    if isinstance(value, torch.Tensor):
        return _split_tensor(path, value, rows, role)
    if role is Role.ROWS and is_sequence(value):
        return _split_list(value, rows)
    if len(path) < DEEPEST and (is_sequence(value) or is_mapping(value) or is_record(value)):
        within = {key: _split((*path, key), part, rows, roles) for key, part in parts(value)}
        return [_rebuilt(value, {key: split[number] for key, split in within.items()}) for number in range(len(rows))]
    return [value] * len(rows)


def _split_tensor(path: Path, value: torch.Tensor, rows: Sequence[int], role: Role | None) -> list[object]:
    if role is Role.ROWS:
        times = value.shape[0] // sum(rows)
        return list(torch.split(value, [times * count for count in rows]))
    if role in (Role.SHARED, Role.SCALAR):
        return [value] * len(rows)
    raise NotSplit(f"its output has a part, {path}, that it had not when the pipeline was tried")


def _split_list(value: Sequence[object], rows: Sequence[int]) -> list[object]:
    times, start = len(value) // sum(rows), 0
    pieces: list[object] = []
    for count in rows:
        pieces.append(value[start : start + times * count])
        start += times * count
    return pieces


def _rebuilt(like: object, within: Mapping[str | int, object]) -> object:
    """A container like `like` with other parts."""
    if isinstance(like, list):
        return list(within.values())
    if isinstance(like, tuple):
        return tuple(within.values())
    if type(like) is dict:
        return dict(within)
    if isinstance(like, Mapping):  # the outputs of diffusers and transformers: a dictionary and a dataclass in one
        return type(cast("object", like))(**cast("dict[str, object]", within))
    clone = copy.copy(like)
    vars(clone).update(cast("dict[str, object]", within))
    return clone
