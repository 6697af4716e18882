"""What travels on an edge: a typed set of named arrays with a little text and a few scalars."""

from typing import TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

Scalar: TypeAlias = bool | int | float | str


class Array(msgspec.Struct, frozen=True, array_like=True):
    """One dense array in C order, little endian. `data` are its bytes, which may lie in memory shared with another process: they
    stay valid as long as somebody holds them, and nobody changes them."""

    dtype: str
    shape: tuple[int, ...]
    data: memoryview

    @classmethod
    def of(cls, values: NDArray[np.generic]) -> "Array":
        """Without a copy where `values` are contiguous: they must not change afterwards."""
        values = np.asarray(values, order="C")
        return cls(values.dtype.name, values.shape, values.reshape(-1).view(np.uint8).data.toreadonly())

    def numpy(self) -> NDArray[np.generic]:
        """Read-only view of the bytes, no copy; it keeps them alive."""
        return np.frombuffer(self.data, dtype=np.dtype(self.dtype)).reshape(self.shape)


class Payload(msgspec.Struct, frozen=True, omit_defaults=True):
    text: str = ""
    arrays: dict[str, Array] = {}
    attributes: dict[str, Scalar] = {}

    @property
    def nbytes(self) -> int:
        """Of its arrays: what a connector has to move."""
        return sum(array.data.nbytes for array in self.arrays.values())


def audio(pcm: bytes, rate: int) -> Payload:
    """Mono signed 16-bit little-endian samples at `rate` Hz, as the array `pcm` of shape [samples]."""
    return Payload(arrays={"pcm": Array("int16", (len(pcm) // 2,), memoryview(pcm))}, attributes={"rate": rate})
