"""What a control message says about a payload: the payload itself, or where it lies."""

from typing import TypeAlias

import msgspec

from engines.payloads import Payload, Scalar


class Key(msgspec.Struct, frozen=True, array_like=True):
    """Names one payload of its producer. `scope` is one stream of payloads that are forgotten in order: server instance,
    connection, request, fence and stage; `seq` counts from 0 inside it."""

    scope: str
    seq: int


class Place(msgspec.Struct, frozen=True, array_like=True):
    """One array inside a record of `nbytes` in all: it begins `offset` bytes after the record's start."""

    dtype: str
    shape: tuple[int, ...]
    offset: int
    nbytes: int


class Inline(msgspec.Struct, frozen=True, tag="inline"):
    """The payload itself."""

    payload: Payload

    @property
    def nbytes(self) -> int:
        return self.payload.nbytes

    @property
    def is_empty(self) -> bool:
        return not self.payload.text and not self.payload.arrays


class Outline(msgspec.Struct, frozen=True, omit_defaults=True):
    """A payload without the bytes of its arrays."""

    key: Key
    arrays: dict[str, Place]
    text: str = ""
    attributes: dict[str, Scalar] = {}

    @property
    def nbytes(self) -> int:
        return sum(place.nbytes for place in self.arrays.values())


class Elsewhere(msgspec.Struct, frozen=True):
    """A payload whose arrays lie somewhere else."""

    outline: Outline

    @property
    def nbytes(self) -> int:
        return self.outline.nbytes

    @property
    def is_empty(self) -> bool:
        return False


class Shared(Elsewhere, frozen=True, tag="shared"):
    """The arrays lie in the arena of a process on this host: engines/connectors/shared_memory.py.

    `arena` is its name, `pid` and `fd` say where its memory can be opened; the record begins at `at` and is the `number`th."""

    arena: str
    pid: int
    fd: int
    at: int
    number: int


class Remote(Elsewhere, frozen=True, tag="remote"):
    """The arrays wait at `address` until they are fetched or forgotten; which connector fetches them is `by`."""

    by: str
    address: str


Content: TypeAlias = Inline | Shared | Remote
