"""What bridges and joins keep of a stream until they can hand it on."""

from engines.payloads import Array, Payload
from engines.pipeline import BrokenStream

MOST_HELD_BYTES = 64 << 20
"""Ten minutes of a codec's frames of 192 float32. Policy: refuse, an edge that needs more has to be chunked."""


def kept(payload: Payload) -> Payload:
    """A copy that holds nothing in the producer's memory."""
    arrays = {name: Array(array.dtype, array.shape, memoryview(bytes(array.data))) for name, array in payload.arrays.items()}
    return Payload(payload.text, arrays, payload.attributes)


def refuse_too_much(what: str, held_bytes: int) -> None:
    """Raises BrokenStream."""
    if held_bytes > MOST_HELD_BYTES:
        raise BrokenStream(f"{what}: expected at most {MOST_HELD_BYTES} bytes held at once, got {held_bytes}; chunk this edge")
