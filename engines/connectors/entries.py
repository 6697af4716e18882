"""What an arena says of each of its pages: which record begins there, and who reads it.

    0     1 while the record is there
    8     MAGIC, number, bytes, digest of its key, checksum of these
    64    one byte for each reader (its lane): how often it reads the record just now

Entries stay where they are, whatever lies in the pages: a reader that comes too late with an old reference marks an entry, never
a byte of somebody else's payload. The producer writes the first cache line, each reader its own byte of the second.

One of the two sees the other: a reader marks, and looks after a fence whether the record is there; the producer takes the record
away, and looks after a fence whether somebody has marked it.
"""

import zlib
from hashlib import blake2b
from struct import Struct

import numpy as np
from numpy.typing import NDArray

from engines.connectors.arena import ENTRY_BYTES, PAGE_BYTES, Arena
from engines.connectors.contents import Key
from engines.connectors.fence import fence

LANES = 64
MOST_MARKS = 255
MAGIC = b"AnRc"
HEADER = Struct("<4sQQ16s")
CHECKSUM = Struct("<I")
HEADER_AT = 8
CHECKSUM_AT = HEADER_AT + HEADER.size
LANES_AT = 64
UNMARKED = bytes(LANES)


class Forgotten(Exception):
    """The record is not there any more."""


class Corrupt(Exception):
    """The entry is not what its producer wrote, or was written for another key."""


class Entries:
    def __init__(self, arena: Arena) -> None:
        self._memory = arena.memory
        self._pages = arena.pages

    def write(self, page: int, key: Key, number: int, nbytes: int) -> None:
        at = _at(page)
        header = HEADER.pack(MAGIC, number, nbytes, _digest(key))
        self._memory[at + HEADER_AT : at + CHECKSUM_AT] = header
        CHECKSUM.pack_into(self._memory, at + CHECKSUM_AT, zlib.crc32(header))
        fence()
        self._memory[at] = 1

    def forget(self, page: int) -> None:
        self._memory[_at(page)] = 0
        fence()

    def check(self, page: int, key: Key, number: int, nbytes: int) -> None:
        """To be called with the page marked. Raises Forgotten, Corrupt."""
        at = _at(page)
        fence()
        if not self._memory[at]:
            raise Forgotten("it was forgotten")
        fence()  # not before: the header may be under way to that of the next record
        header = self._memory[at + HEADER_AT : at + CHECKSUM_AT]
        if zlib.crc32(header) != CHECKSUM.unpack_from(self._memory, at + CHECKSUM_AT)[0]:
            raise Corrupt("the checksum of its entry is wrong")
        magic, found, length, digest = HEADER.unpack(header)
        if found != number:
            raise Forgotten("it was forgotten, and another lies in its place")
        if (magic, length, digest) != (MAGIC, nbytes, _digest(key)):
            raise Corrupt("its entry speaks of another payload")

    def marks(self, page: int) -> bytes:
        """Of all lanes."""
        at = _at(page) + LANES_AT
        return self._memory[at : at + LANES]

    def mark(self, page: int, lane: int) -> bool:
        """False when the lane has marked it as often as can be. Only one thread at a time marks and unmarks in a lane."""
        at = _at(page) + LANES_AT + lane
        marks = self._memory[at]
        if marks == MOST_MARKS:
            return False
        self._memory[at] = marks + 1
        return True

    def unmark(self, page: int, lane: int) -> None:
        at = _at(page) + LANES_AT + lane
        fence()
        self._memory[at] -= 1

    def clear(self, lane: int) -> None:
        """All that one lane has marked."""
        self._table()[:, LANES_AT + lane] = 0

    def _table(self) -> NDArray[np.uint8]:
        flat = np.frombuffer(self._memory, np.uint8, self._pages * ENTRY_BYTES, PAGE_BYTES)
        return flat.reshape(self._pages, ENTRY_BYTES)


def _at(page: int) -> int:
    return PAGE_BYTES + page * ENTRY_BYTES


def _digest(key: Key) -> bytes:
    return blake2b(f"{key.seq} {key.scope}".encode(), digest_size=16).digest()
