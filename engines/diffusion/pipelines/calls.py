"""One call of a network, held until it can be made together with others: what it needs to be equal in, and how many rows it
has."""

import hashlib
import itertools
from collections.abc import Hashable, Mapping, MutableMapping
from dataclasses import dataclass
from typing import NamedTuple, cast

import torch
from torch.utils.weak import WeakIdKeyDictionary

from engines.diffusion.pipelines.padding import Filled, Masked, Padding
from engines.diffusion.pipelines.roles import Path, Role, Roles, is_mapping, is_sequence, parts
from engines.diffusion.pipelines.traits import Site, Traits

_numbers = itertools.count()
_digests = cast("MutableMapping[torch.Tensor, tuple[int, bytes]]", WeakIdKeyDictionary())


@dataclass(slots=True, eq=False)
class Call:
    """`arguments` are {"args": tuple, "kwargs": dict}. `step` is how many steps were done when it was made, `slot` which of the
    calls of that step it is: `cond`, `uncond` or a number. `prepares`: the loop of steps has not begun."""

    site: Site
    traits: Traits
    arguments: Mapping[str, object]
    step: int
    slot: str
    prepares: bool
    key: Hashable
    rows: int
    length: int
    """Of the arguments that are made as long as those of others; 0 when there are none."""


class Keyed(NamedTuple):
    key: Hashable
    rows: int
    length: int


def keyed(site: Site, arguments: Mapping[str, object], traits: Traits) -> Keyed:
    """Calls with equal keys differ in nothing but their rows, and how long these are."""
    rows = _Rows(traits.padding)
    signature = None if traits.single else _signature((), arguments, traits.roles, rows)
    if signature is None or rows.count is None:
        return Keyed((site, next(_numbers)), rows.count or 1, 0)
    return Keyed((site, id(traits), signature), rows.count, rows.length)


def contents(arguments: Mapping[str, object]) -> Hashable:
    """Equal for calls of a site that will have the same output."""
    return _signature((), arguments, {}, _Rows({}))


@dataclass(slots=True)
class _Rows:
    padding: Padding
    count: int | None = None
    length: int = 0

    def share(self, size: int) -> object:
        """Is `size` the number of rows? Lists and tensors of other sizes have to keep their proportion."""
        self.count = size if self.count is None else self.count
        return size / self.count


def _signature(path: Path, value: object, roles: Roles, rows: _Rows) -> Hashable | None:
    """None: no call with this can be merged."""
    role = roles.get(path)
    rule = rows.padding.get(path)
    if rule is not None:
        return _signature_of_padded(value, rule, rows)
    if role is Role.FOREIGN:
        return None
    if isinstance(value, torch.Tensor):
        return _signature_of_tensor(value, role, rows)
    if role is Role.ROWS and is_sequence(value):
        return "rows", rows.share(len(value)), frozenset(_signature_of_element(element) for element in value)
    if is_sequence(value) or is_mapping(value):
        return _signature_of_parts(path, value, roles, rows)
    if isinstance(value, bool | int | float | str | type(None) | torch.dtype | torch.device):
        return type(value), value
    if isinstance(value, torch.Generator):
        return "generator"  # what uses one is not equal when merged, and found out when the pipeline is tried
    return id(value)


def _signature_of_parts(path: Path, value: object, roles: Roles, rows: _Rows) -> Hashable | None:
    signatures = [(key, _signature((*path, key), part, roles, rows)) for key, part in parts(value)]
    return None if any(signature is None for _, signature in signatures) else (type(value), *signatures)


def _signature_of_tensor(value: torch.Tensor, role: Role | None, rows: _Rows) -> Hashable:
    if role is Role.ROWS:
        return "rows", rows.share(value.shape[0]), value.dtype, tuple(value.shape[1:])
    if role is Role.SCALAR and value.ndim == 0:
        return "scalar", value.dtype
    return "shared", value.dtype, tuple(value.shape), digest(value)


def _signature_of_padded(value: object, rule: Filled | Masked, rows: _Rows) -> Hashable | None:
    if isinstance(rule, Masked):
        return "masked"
    if not isinstance(value, torch.Tensor) or value.ndim < 2 or value.shape[1] != (rows.length or value.shape[1]):
        return None
    rows.length = value.shape[1]
    return "padded", rows.share(value.shape[0]), value.dtype, tuple(value.shape[2:])


def _signature_of_element(element: object) -> Hashable:
    """Of an element of a list with one for each row. A network takes a list where its rows need not be equally long."""
    if isinstance(element, torch.Tensor):
        return element.dtype, tuple(element.shape[1:])
    return repr(element)


def digest(value: torch.Tensor) -> bytes:
    """Of a tensor's content; computed once for each tensor, and again when it has been written to."""
    version = 0 if value.is_inference() else value._version
    known = _digests.get(value)
    if known is not None and known[0] == version:
        return known[1]
    content = value.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy()
    computed = hashlib.blake2b(content.tobytes(), digest_size=16).digest()
    _digests[value] = (version, computed)
    return computed
