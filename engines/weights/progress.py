"""How far a long step is: a bar that moves on a terminal, a few plain lines elsewhere."""

import sys
import time
from collections.abc import Callable
from typing import Protocol, TextIO

_BAR_CELLS = 24
_REDRAW_S = 0.1
_PLAIN_STEP = 0.25
_MB = 1_000_000


class Progress(Protocol):
    def at(self, done_bytes: int, total_bytes: int) -> None:
        """`total_bytes` is 0 while unknown."""
        ...

    def close(self) -> None: ...


class Bar:
    """Redraws one line, at most ten times a second."""

    def __init__(self, label: str, out: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        self._label, self._out, self._clock = label, out, clock
        self._drawn_s = float("-inf")
        self._last = (0, 0)

    def at(self, done_bytes: int, total_bytes: int) -> None:
        self._last = (done_bytes, total_bytes)
        if self._clock() - self._drawn_s >= _REDRAW_S:
            self._draw()

    def close(self) -> None:
        self._draw()
        self._out.write("\n")

    def _draw(self) -> None:
        self._drawn_s = self._clock()
        done, total = self._last
        full = _BAR_CELLS * done // total if total else 0
        cells = "━" * full + "╌" * (_BAR_CELLS - full)
        self._out.write(f"\r\x1b[K{self._label:<44} {cells} {done / _MB:.0f} of {total / _MB:.0f} MB")
        self._out.flush()


class Lines:
    """A line for each quarter."""

    def __init__(self, label: str, out: TextIO) -> None:
        self._label, self._out = label, out
        self._next = _PLAIN_STEP

    def at(self, done_bytes: int, total_bytes: int) -> None:
        if not total_bytes or done_bytes < self._next * total_bytes:
            return
        self._out.write(f"{self._label}: {done_bytes / _MB:.0f} of {total_bytes / _MB:.0f} MB\n")
        self._out.flush()
        self._next = (done_bytes / total_bytes // _PLAIN_STEP + 1) * _PLAIN_STEP

    def close(self) -> None:
        pass


def progress(label: str) -> Progress:
    return Bar(label, sys.stderr) if sys.stderr.isatty() else Lines(label, sys.stderr)
