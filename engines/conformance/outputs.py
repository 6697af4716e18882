"""Comparing what models make."""

import hashlib
from collections.abc import Sequence
from typing import TypeAlias

import msgspec
import numpy as np

from engines.models import Produced
from engines.payloads import Array, Payload, Scalar

Answers: TypeAlias = list[list[Produced]]
"""Of one request: what each input gave, and then what `flush` did."""


def difference(expected: Sequence[Sequence[Produced]], got: Sequence[Sequence[Produced]], tolerance: float = 0.0) -> str:
    """Where two requests' answers part, in a few words; empty where they do not."""
    for place, (wanted, came) in enumerate(zip(expected, got, strict=True)):
        if len(wanted) != len(came):
            return f"input {place}: expected {len(wanted)} chunks, got {len(came)}"
        for number, (one, other) in enumerate(zip(wanted, came, strict=True)):
            if fault := _produced_difference(one, other, tolerance):
                return f"input {place}, chunk {number}: {fault}"
    return ""


def payload_difference(expected: Payload, got: Payload, tolerance: float = 0.0) -> str:
    if expected.text != got.text:
        return f"text: expected {expected.text!r}, got {got.text!r}"
    if expected.attributes.keys() != got.attributes.keys() or expected.arrays.keys() != got.arrays.keys():
        names = [sorted((*payload.attributes, *payload.arrays)) for payload in (expected, got)]
        return f"expected attributes and arrays named {names[0]}, got {names[1]}"
    for name, value in expected.attributes.items():
        if not _close(value, got.attributes[name], tolerance):
            return f"attribute {name}: expected {value!r}, got {got.attributes[name]!r}"
    for name, array in expected.arrays.items():
        if fault := _array_difference(array, got.arrays[name], tolerance):
            return f"array {name}: {fault}"
    return ""


def travelled(payload: Payload) -> Payload:
    """As it arrives in another process. Raises what msgspec raises."""
    return msgspec.msgpack.decode(msgspec.msgpack.encode(payload), type=Payload)


def fingerprint(payload: Payload) -> bytes:
    return hashlib.sha256(msgspec.msgpack.encode(payload)).digest()


def _produced_difference(one: Produced, other: Produced, tolerance: float) -> str:
    if one.units != other.units or not _close(one.pts, other.pts, tolerance):
        return f"expected {one.units} units at {one.pts} s, got {other.units} at {other.pts} s"
    return payload_difference(one.payload, other.payload, tolerance)


def _array_difference(one: Array, other: Array, tolerance: float) -> str:
    if (one.dtype, one.shape) != (other.dtype, other.shape):
        return f"expected {one.dtype} of shape {one.shape}, got {other.dtype} of shape {other.shape}"
    if one.data == other.data:
        return ""
    furthest = float(np.max(np.abs(one.numpy().astype(np.float64) - other.numpy().astype(np.float64))))
    return "" if furthest <= tolerance else f"expected equal within {tolerance:g}, got values {furthest:.3g} apart"


def _close(one: Scalar, other: Scalar, tolerance: float) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return one == other or abs(one - other) <= tolerance
    return type(one) is type(other) and one == other
