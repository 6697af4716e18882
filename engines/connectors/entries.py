"""What an arena says of each of its pages: which record begins there, and who reads it.

    0     number of the record, 0: there is none
    8     MAGIC, digest of its key, its bytes; a checksum of all these, which tells a damaged entry from another record's
    64    one byte for each reader (its lane): how often it reads the record just now

Entries stay where they are, whatever lies in the pages: a reader that comes too late with an old reference marks an entry, never
a byte of somebody else's payload. The producer writes the first cache line, each reader its own byte of the second.

One of the two sees the other: a reader marks, and looks after a fence whether the record is there; the producer takes the number
away, and looks after a fence whether somebody has marked the page. So an entry in which a reader finds its number stays as it is.
"""

from struct import Struct
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from engines.connectors.arena import ENTRY_BYTES, LANES, PAGE_BYTES, Arena
from engines.connectors.contents import Key, Outline
from engines.connectors.fence import fence

LANES_AT = 64
MOST_MARKS = 255
UNMARKED = bytes(LANES)
MAGIC = b"AnRc"
HEADER = Struct("<Q4sIQ")
CHECKSUM = Struct("<I")
ENTRY_USED_BYTES = HEADER.size + CHECKSUM.size
NUMBER_BYTES = 8
NO_NUMBER = bytes(NUMBER_BYTES)


class Forgotten(Exception):
    """The record is not there any more."""


class Corrupt(Exception):
    """The entry is not what its producer wrote, or was written for another key."""


class Entries:
    def __init__(self, arena: Arena) -> None:
        self._memory = arena.memory
        self._pages = arena.pages

    def write(self, page: int, key: Key, number: int, nbytes: int) -> None:
        """The number last: until then a late reader finds none."""
        at = PAGE_BYTES + page * ENTRY_BYTES
        header = _header(key, number, nbytes)
        self._memory[at + NUMBER_BYTES : at + ENTRY_USED_BYTES] = header[NUMBER_BYTES:] + CHECKSUM.pack(crc32(header))
        fence()
        self._memory[at : at + NUMBER_BYTES] = header[:NUMBER_BYTES]

    def forget(self, page: int) -> None:
        at = PAGE_BYTES + page * ENTRY_BYTES
        self._memory[at : at + NUMBER_BYTES] = NO_NUMBER
        fence()

    def check(self, page: int, key: Key, number: int, nbytes: int) -> None:
        """To be called with the page marked. Raises Forgotten, Corrupt."""
        at = PAGE_BYTES + page * ENTRY_BYTES
        fence()
        found = self._memory[at : at + HEADER.size]
        if found != _header(key, number, nbytes):
            raise self._difference(at, found[:NUMBER_BYTES], number)

    def marks(self, page: int) -> bytes:
        """Of all lanes."""
        at = PAGE_BYTES + page * ENTRY_BYTES + LANES_AT
        return self._memory[at : at + LANES]

    def mark(self, page: int, lane: int) -> bool:
        """False when the lane has marked it as often as can be. Only one thread at a time marks and unmarks in a lane."""
        at = PAGE_BYTES + page * ENTRY_BYTES + LANES_AT + lane
        marks = self._memory[at]
        if marks == MOST_MARKS:
            return False
        self._memory[at] = marks + 1
        return True

    def unmark(self, page: int, lane: int) -> None:
        at = PAGE_BYTES + page * ENTRY_BYTES + LANES_AT + lane
        fence()
        self._memory[at] -= 1

    def clear(self, lane: int) -> None:
        """All that one lane has marked."""
        self._table()[:, LANES_AT + lane] = 0

    def _difference(self, at: int, number: bytes, expected: int) -> Forgotten | Corrupt:
        fence()  # a number comes last: now the rest of the entry is there, too
        header = self._memory[at : at + HEADER.size]
        if NO_NUMBER in (number, header[:NUMBER_BYTES]):
            return Forgotten("it was forgotten")
        if self._memory[at + HEADER.size : at + ENTRY_USED_BYTES] != CHECKSUM.pack(crc32(header)):
            return Corrupt("the checksum of its entry is wrong")
        if number != expected.to_bytes(NUMBER_BYTES, "little"):
            return Forgotten("it was forgotten, and another lies in its place")
        return Corrupt("its entry speaks of another payload")

    def _table(self) -> NDArray[np.uint8]:
        flat = np.frombuffer(self._memory, np.uint8, self._pages * ENTRY_BYTES, PAGE_BYTES)
        return flat.reshape(self._pages, ENTRY_BYTES)


def _header(key: Key, number: int, nbytes: int) -> bytes:
    return HEADER.pack(number, MAGIC, crc32(key.scope.encode(), key.seq), nbytes)


def occupied_bytes(outline: Outline) -> int:
    """Its arrays lie in order: where the last one ends."""
    nbytes = 0
    for place in outline.arrays.values():
        nbytes = place.offset + place.nbytes
    return nbytes
