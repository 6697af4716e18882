"""A consumer's side of somebody's arena: views that hold their record while any of them lives."""

import weakref
from collections import deque
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from engines.connectors.arena import LANE_LOCKS, PAGE_BYTES, Arena, open_arena
from engines.connectors.contents import Shared
from engines.connectors.entries import MOST_MARKS, Corrupt, Entries, occupied_bytes


class TooManyReaders(Exception):
    """A fixed number of places is taken."""


class ArenaReader:
    """Views may be dropped in any thread, and by the garbage collector at any moment."""

    def __init__(self, name: str, pid: int, fd: int) -> None:
        """Raises ArenaGone, TooManyReaders."""
        self.pid = pid
        self.arena: Arena = open_arena(name, pid, fd)
        self._entries = Entries(self.arena)
        self._size_bytes = self.arena.pages * PAGE_BYTES
        self._lane = self._take_lane()
        self._marking = Lock()
        self._views: dict[int, tuple[weakref.ref[NDArray[np.uint8]], int]] = {}
        """By the reference's id, with the page."""
        self._dropped: deque[int] = deque()

    def view(self, content: Shared) -> memoryview:
        """The record, for as long as somebody holds this or a part of it. Raises Forgotten, Corrupt, TooManyReaders."""
        page, nbytes = content.at // PAGE_BYTES, occupied_bytes(content.outline)
        if page < 0 or content.number < 1 or nbytes < 1 or page * PAGE_BYTES + nbytes > self._size_bytes:
            raise Corrupt(f"record {content.number}, bytes {content.at} to {content.at + nbytes}, cannot be in its arena")
        self._mark(page)
        try:
            self._entries.check(page, content.outline.key, content.number, nbytes)
        except BaseException:
            self._unmark(page)
            raise
        return self._watched(page, nbytes)

    def close(self) -> None:
        """Idempotent; views stay as they are."""
        self.arena.close()

    def _take_lane(self) -> int:
        for lane, lock in enumerate(LANE_LOCKS):
            if lock.take(self.arena.fd):
                self._entries.clear(lane)  # a reader that was killed has marked there
                return lane
        self.arena.close()
        raise TooManyReaders(f"{len(LANE_LOCKS)} processes read arena {self.arena.name} already, and no more can")

    def _watched(self, page: int, nbytes: int) -> memoryview:
        """Whatever is made of this keeps the array beneath alive, be it numpy's, torch's or another memoryview."""
        record = np.frombuffer(self.arena.memory, np.uint8, nbytes, self.arena.first + page * PAGE_BYTES)
        reference = weakref.ref(record, self._gone)
        self._views[id(reference)] = reference, page
        return record.data

    def _gone(self, reference: "weakref.ref[NDArray[np.uint8]]") -> None:
        _, page = self._views.pop(id(reference))
        self._unmark(page)

    def _mark(self, page: int) -> None:
        with self._marking:
            marked = self._entries.mark(page, self._lane)
        if self._dropped:
            self._unmark_dropped()
        if not marked:
            raise TooManyReaders(f"this process reads it {MOST_MARKS} times already, and no more can")

    def _unmark(self, page: int) -> None:
        self._dropped.append(page)
        self._unmark_dropped()

    def _unmark_dropped(self) -> None:
        """Waits for nobody: whoever marks or unmarks just now looks at `_dropped` once more when done, and it may be this very
        thread, interrupted by the garbage collector."""
        while self._dropped and self._marking.acquire(blocking=False):
            try:
                while self._dropped:
                    self._entries.unmark(self._dropped.popleft(), self._lane)
            finally:
                self._marking.release()
