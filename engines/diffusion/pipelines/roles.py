"""Which parts of a network's arguments and outputs belong to one picture, learned by comparing a call for one picture with the
same call for two: what doubles is per row, what stays is shared."""

from collections.abc import Iterator, Mapping
from enum import Enum
from typing import TypeAlias, TypeGuard

import torch

Path: TypeAlias = tuple[str | int, ...]
DEEPEST = 8
"""Levels of nesting that are looked into; outputs hold caches that refer to their owners."""


class Role(Enum):
    ROWS = "rows"
    """Axis 0 of a tensor, or the length of a list, is that of the batch."""
    SHARED = "shared"
    """One for all rows: it must be equal in calls that share a forward."""
    SCALAR = "scalar"
    """A tensor without axes, such as a time step: given to each row of its call."""
    FOREIGN = "foreign"
    """It changed in another way: calls with it cannot be merged."""


Roles: TypeAlias = dict[Path, Role]


def learn(roles: Roles, path: Path, one: object, two: object) -> None:
    """Enter the roles of `one` and all that is in it, given the same for two pictures."""
    role = _role(one, two)
    if role is not None:
        roles[path] = role if roles.get(path, role) is role else Role.FOREIGN
    elif not isinstance(one, torch.Tensor) and len(path) < DEEPEST:
        others = dict(parts(two))
        for key, part in parts(one):
            learn(roles, (*path, key), part, others.get(key))


Sequence: TypeAlias = list[object] | tuple[object, ...]


def is_sequence(value: object) -> TypeGuard[Sequence]:
    return isinstance(value, list | tuple)


def is_mapping(value: object) -> TypeGuard[Mapping[str, object]]:
    return isinstance(value, Mapping)


def parts(value: object) -> Iterator[tuple[str | int, object]]:
    """What is in a container: of a list by number, of a dictionary or a record by name."""
    if is_sequence(value):
        yield from enumerate(value)
    elif is_mapping(value):
        yield from value.items()
    elif is_record(value):
        yield from vars(value).items()


def is_record(value: object) -> bool:
    """An object of the libraries' own that holds tensors: a distribution, a cache."""
    kind = type(value)
    return (
        kind.__module__.startswith(("diffusers.", "transformers.")) and hasattr(value, "__dict__") and not isinstance(value, type)
    )


def _role(one: object, two: object) -> Role | None:
    """None: no tensor and no list that grew; what is in it has roles of its own."""
    if isinstance(one, torch.Tensor):
        return _role_of_tensor(one, two) if isinstance(two, torch.Tensor) else Role.FOREIGN
    if is_sequence(one) and is_sequence(two):
        few, many = len(one), len(two)
        if few == many:
            return None
        return Role.ROWS if many == 2 * few else Role.FOREIGN
    return None if type(one) is type(two) else Role.FOREIGN


def _role_of_tensor(one: torch.Tensor, two: torch.Tensor) -> Role:
    if one.ndim == two.ndim == 0:
        return Role.SCALAR
    if one.shape == two.shape:
        return Role.SHARED
    doubled = one.shape[1:] == two.shape[1:] and 2 * one.shape[0] == two.shape[0]
    return Role.ROWS if doubled else Role.FOREIGN
