"""The wire format of a payload connection, and both of its ends.

    consumer → producer   REQUEST (magic, length), Wanted in msgpack
    producer → consumer   REPLY (magic, whether it is there, bytes to come, checksum), then the arrays in the outline's order

The checksum is over the other fields and the key, so that an answer to something else is noticed. A connection carries one
fetch after the other.
"""

import struct
import zlib

import msgspec
import numpy as np

from engines.connectors.contents import Key, Outline
from engines.connectors.layout import payload, record_bytes
from engines.network.raw_connection import HungUp, RawConnection
from engines.payloads import Payload

MAGIC = b"AnPl"
REQUEST = struct.Struct(">4sI")
REPLY = struct.Struct(">4s?QI")
MAX_REQUEST_BYTES = 64 << 10
"""A key's scope holds names that a pipeline and a caller chose."""


class ForeignFrame(ConnectionError):
    """What came is no frame of ours; the connection cannot go on."""


class Wanted(msgspec.Struct, frozen=True, array_like=True):
    """`token` names the producer's instance: another process may have taken over its port."""

    token: str
    key: Key


_decoder = msgspec.msgpack.Decoder(Wanted)
_encoder = msgspec.msgpack.Encoder()


async def fetch(connection: RawConnection, token: str, outline: Outline) -> Payload | None:
    """None: the producer does not have it any more. Raises OSError; PayloadLost when the outline is none."""
    record = np.empty(record_bytes(outline), np.uint8).data
    await ask(connection, Wanted(token, outline.key))
    magic, is_there, nbytes, checksum = REPLY.unpack(await connection.read(REPLY.size))
    if magic != MAGIC or checksum != _checksum(outline.key, is_there, nbytes):
        raise ForeignFrame("the producer answered with something that is no reply to this request")
    if not is_there:
        return None
    if nbytes != outline.nbytes:
        raise ForeignFrame(f"the producer announced {nbytes} bytes, and {outline.nbytes} were expected")
    for place in outline.arrays.values():
        await connection.fill(record[place.offset : place.offset + place.nbytes])
    return payload(outline, record)


async def ask(connection: RawConnection, wanted: Wanted) -> None:
    """Raises OSError."""
    body = _encoder.encode(wanted)
    await connection.send(REQUEST.pack(MAGIC, len(body)) + body)


async def wanted(connection: RawConnection) -> Wanted | None:
    """The next request; None when the consumer has hung up between two. Raises OSError."""
    try:
        header = await connection.read(REQUEST.size)
    except HungUp:
        return None
    magic, length = REQUEST.unpack(header)
    if magic != MAGIC or length > MAX_REQUEST_BYTES:
        raise ForeignFrame(f"a consumer sent {magic!r} and a length of {length}, which is no request")
    try:
        return _decoder.decode(await connection.read(length))
    except (msgspec.MsgspecError, RecursionError) as bad:
        raise ForeignFrame(f"a consumer sent a request that cannot be read: {bad}") from bad


async def answer(connection: RawConnection, key: Key, found: Payload | None) -> None:
    """Raises OSError."""
    nbytes = found.nbytes if found is not None else 0
    is_there = found is not None
    await connection.send(REPLY.pack(MAGIC, is_there, nbytes, _checksum(key, is_there, nbytes)))
    if found is not None:
        for array in found.arrays.values():
            await connection.send(array.data)


def _checksum(key: Key, is_there: bool, nbytes: int) -> int:
    return zlib.crc32(_encoder.encode((key, is_there, nbytes)))
