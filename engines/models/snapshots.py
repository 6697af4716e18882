"""What a model's `snapshot` gives and `restore` reads: marked with a kind, which changes when the layout does, and checked."""

import math
from collections.abc import Mapping
from typing import cast

import numpy as np
from numpy.typing import NDArray

from engines.models import InvalidInput
from engines.payloads import Array, Payload, Scalar
from engines.resampling import StreamResampler

KIND = "snapshot"
"""The attribute that holds the kind and version: "silero_vad 1"."""


def saved(
    kind: str,
    arrays: Mapping[str, NDArray[np.float32]] | None = None,
    resampler: StreamResampler | None = None,
    **attributes: Scalar,
) -> Payload:
    """Copies the arrays: the state may go on and change its own. A resampler becomes the array `fed` and the number `given`."""
    kept = dict(arrays or {})
    if resampler is not None:
        kept["fed"], attributes["given"] = resampler.saved()
    copies = {name: Array.of(values.copy()) for name, values in kept.items()}
    return Payload(arrays=copies, attributes={KIND: kind, **attributes})


class Snapshot:
    """A snapshot that is being read. Everything raises InvalidInput that names the field, what was expected and what came."""

    def __init__(self, kind: str, payload: Payload) -> None:
        found = payload.attributes.get(KIND)
        if found != kind:
            raise InvalidInput(f"{KIND}: expected {kind!r}, got {found!r}")
        self._payload = payload

    def flag(self, name: str) -> bool:
        value = self._payload.attributes.get(name)
        if not isinstance(value, bool):
            raise InvalidInput(f"{KIND}.{name}: expected true or false, got {value!r}")
        return value

    def count(self, name: str) -> int:
        value = self._payload.attributes.get(name)
        if type(value) is not int or value < 0:
            raise InvalidInput(f"{KIND}.{name}: expected a whole number from 0 on, got {value!r}")
        return value

    def number(self, name: str) -> float:
        value = self._payload.attributes.get(name)
        if not isinstance(value, float) or not math.isfinite(value):
            raise InvalidInput(f"{KIND}.{name}: expected a finite number, got {value!r}")
        return value

    def group(self, prefix: str) -> dict[str, Scalar]:
        """The attributes whose names begin with `prefix`, without it."""
        attributes = self._payload.attributes.items()
        return {name.removeprefix(prefix): value for name, value in attributes if name.startswith(prefix)}

    def floats(self, name: str, shape: tuple[int | None, ...]) -> NDArray[np.float32]:
        """A copy of the array float32 of this shape; None fits any length."""
        array = self._payload.arrays.get(name)
        if array is None or array.dtype != "float32" or not _fits(array, shape):
            got = "nothing" if array is None else f"{array.dtype} of shape {array.shape} in {array.data.nbytes} bytes"
            raise InvalidInput(f"{KIND}.{name}: expected float32 of shape {shape}, got {got}")
        return cast(NDArray[np.float32], array.numpy().copy())

    def resume(self, resampler: StreamResampler | None) -> None:
        """What was saved of a resampler like this; None: of none."""
        if resampler is None:
            return
        try:
            resampler.restore(self.floats("fed", (None,)), self.count("given"))
        except ValueError as wrong:
            raise InvalidInput(f"{KIND}.{wrong}") from wrong


def _fits(array: Array, shape: tuple[int | None, ...]) -> bool:
    lengths_fit = len(array.shape) == len(shape) and all(
        expected in (None, length) for expected, length in zip(shape, array.shape, strict=True)
    )
    return lengths_fit and array.data.nbytes == 4 * int(np.prod(array.shape))
