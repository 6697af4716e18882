"""Pictures that somebody wanted by URL, kept for a while. Who knows the URL may have the picture: it cannot be guessed."""

import secrets
import time
from collections.abc import Callable
from typing import NamedTuple

PATH = "/pictures/"
LIFE_S = 3_600.0
MOST_BYTES = 256 << 20
"""Overflow policy: the oldest goes before its time."""


class Kept(NamedTuple):
    file: bytes
    format: str
    until: float


class PictureLinks:
    """In the memory of this node. `prefix` begins their names: behind a front it tells the node. `clock` is in seconds."""

    def __init__(self, prefix: str = "pic", clock: Callable[[], float] = time.monotonic, most_bytes: int = MOST_BYTES) -> None:
        self._prefix = prefix
        self._most_bytes = most_bytes
        self._clock = clock
        self._kept: dict[str, Kept] = {}
        """The oldest first: all live equally long."""
        self._bytes = 0

    def keep(self, file: bytes, format: str) -> str:
        """The path under which it can be had."""
        name = f"{self._prefix}_{secrets.token_hex(24)}.{format}"
        self._kept[name] = Kept(file, format, self._clock() + LIFE_S)
        self._bytes += len(file)
        self._drop_old()
        return PATH + name

    def find(self, name: str) -> Kept | None:
        self._drop_old()
        return self._kept.get(name)

    def _drop_old(self) -> None:
        now = self._clock()
        while self._kept:
            name, oldest = next(iter(self._kept.items()))
            if oldest.until > now and self._bytes <= self._most_bytes:
                return
            del self._kept[name]
            self._bytes -= len(oldest.file)
