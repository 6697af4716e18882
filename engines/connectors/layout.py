"""How the arrays of a payload lie in one record, and how they are found again."""

import math

import numpy as np

from engines.connectors import PayloadLost
from engines.connectors.contents import Key, Outline, Place
from engines.payloads import Array, Payload

ALIGNMENT_BYTES = 64
"""A cache line, and the widest vector of numerics."""


def outline(key: Key, payload: Payload) -> Outline:
    places: dict[str, Place] = {}
    offset = 0
    for name, array in payload.arrays.items():
        places[name] = Place(array.dtype, array.shape, offset, array.data.nbytes)
        offset += -(-array.data.nbytes // ALIGNMENT_BYTES) * ALIGNMENT_BYTES
    return Outline(key, places, payload.text, payload.attributes)


def record_bytes(outline: Outline) -> int:
    """From the record's start to the end of the last array. Raises PayloadLost for places that cannot be."""
    for name, place in outline.arrays.items():
        try:
            expected = math.prod(place.shape) * np.dtype(place.dtype).itemsize
        except TypeError as unknown:
            raise PayloadLost(outline.key, f"array {name!r}: {place.dtype!r} is no dtype") from unknown
        if place.nbytes != expected or min((place.offset, *place.shape)) < 0:
            raise PayloadLost(outline.key, f"array {name!r}: {place} contradicts itself")
    return max((place.offset + place.nbytes for place in outline.arrays.values()), default=0)


def payload(outline: Outline, record: memoryview) -> Payload:
    """Views into `record`, no copy."""
    arrays = {
        name: Array(place.dtype, place.shape, record[place.offset : place.offset + place.nbytes].toreadonly())
        for name, place in outline.arrays.items()
    }
    return Payload(outline.text, arrays, outline.attributes)
