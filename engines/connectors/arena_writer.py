"""The producer's side of an arena."""

import itertools
import os
from collections import deque

from engines.connectors.arena import LANE_LOCKS, PAGE_BYTES, Arena, create
from engines.connectors.contents import Key, Shared
from engines.connectors.entries import UNMARKED, Entries, occupied_bytes
from engines.connectors.free_pages import FreePages
from engines.connectors.held import Held
from engines.connectors.layout import outline
from engines.payloads import Payload

LOOKS_PER_CLEANUP = 8
"""How many forgotten records that were still read are looked at again: it takes the same time however many there are. `put` does
so only when there is no room, because somebody waits for it."""


class ArenaWriter:
    def __init__(self, capacity_bytes: int) -> None:
        """Raises OSError."""
        self.arena: Arena = create(capacity_bytes)
        self._entries = Entries(self.arena)
        self._free = FreePages(self.arena.pages)
        self._records = memoryview(self.arena.memory)[self.arena.first :]
        self._numbers = itertools.count(1)
        self._held: Held[tuple[int, int]] = Held()
        """First page and how many. Bounded by the pages; when they are used up nothing is put."""
        self._lingering: deque[tuple[int, int]] = deque()
        """Forgotten, but read when last looked at. Bounded by the pages, too."""

    def put(self, key: Key, payload: Payload) -> Shared | None:
        """One copy of the arrays; None when there is no room for them just now."""
        sketch = outline(key, payload)
        nbytes = occupied_bytes(sketch)
        count = -(-nbytes // PAGE_BYTES)
        if (page := self._take(count)) is None:
            return None
        at = page * PAGE_BYTES
        for name, place in sketch.arrays.items():
            start = at + place.offset
            self._records[start : start + place.nbytes] = payload.arrays[name].data
        number = next(self._numbers)
        self._entries.write(page, key, number, nbytes)
        for replaced in self._held.add(key, (page, count)):
            self._forget(*replaced)
        return Shared(sketch, self.arena.name, os.getpid(), self.arena.fd, at, number)

    def cleanup(self, scope: str, before: int | None = None) -> int:
        self._look_again(min(LOOKS_PER_CLEANUP, len(self._lingering)))
        forgotten = self._held.take(scope, before)
        for pages in forgotten:
            self._forget(*pages)
        return len(forgotten)

    def holds(self, scope: str) -> int:
        return self._held.count(scope)

    def close(self) -> None:
        """Idempotent. Readers see from the owner's lock that nothing more comes; what they view stays as it is."""
        for pages in self._held.take_all():
            self._forget(*pages)
        self._records.release()
        self.arena.memory.close()
        self.arena.close()

    def _take(self, count: int) -> int | None:
        if (page := self._free.take(count)) is None:
            self._clear_lanes_of_the_dead()
            self._look_again(len(self._lingering))
            page = self._free.take(count)
        return page

    def _forget(self, page: int, count: int) -> None:
        self._entries.forget(page)
        self._free_or_linger(page, count)

    def _look_again(self, records: int) -> None:
        for _ in range(records):
            self._free_or_linger(*self._lingering.popleft())

    def _free_or_linger(self, page: int, count: int) -> None:
        if self._entries.marks(page) == UNMARKED:
            self._free.give(page, count)
        else:
            self._lingering.append((page, count))

    def _clear_lanes_of_the_dead(self) -> None:
        """A lane's lock goes with its reader. It is held here meanwhile, so that no new reader marks what is being cleared."""
        marked = {lane for page, _ in self._lingering for lane, marks in enumerate(self._entries.marks(page)) if marks}
        for lane in marked:
            if LANE_LOCKS[lane].take(self.arena.fd):
                self._entries.clear(lane)
                LANE_LOCKS[lane].leave(self.arena.fd)
