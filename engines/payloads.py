"""What travels on an edge: a typed set of named arrays with a little text and a few scalars."""

from typing import TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

Scalar: TypeAlias = bool | int | float | str


class Array(msgspec.Struct, frozen=True, array_like=True):
    """One dense array as bytes in C order, little endian."""

    dtype: str
    shape: tuple[int, ...]
    data: bytes

    @classmethod
    def of(cls, values: NDArray[np.generic]) -> "Array":
        return cls(values.dtype.name, values.shape, np.ascontiguousarray(values).tobytes())

    def numpy(self) -> NDArray[np.generic]:
        """Read-only view of the bytes, no copy."""
        return np.frombuffer(self.data, dtype=np.dtype(self.dtype)).reshape(self.shape)


class Payload(msgspec.Struct, frozen=True, omit_defaults=True):
    text: str = ""
    arrays: dict[str, Array] = {}
    attributes: dict[str, Scalar] = {}


def audio(pcm: bytes, rate: int) -> Payload:
    """Mono signed 16-bit little-endian samples at `rate` Hz, as the array `pcm` of shape [samples]."""
    return Payload(arrays={"pcm": Array("int16", (len(pcm) // 2,), pcm)}, attributes={"rate": rate})
