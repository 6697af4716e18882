"""How far a long step is: a bar that moves on a terminal, a few plain lines elsewhere; nothing of a step that is done at once."""

import sys
import time
from collections.abc import Callable
from typing import Protocol, TextIO

_BAR_CELLS = 24
_PATIENCE_S = 2.0
_REDRAW_S = 0.1
_LINE_S = 10.0
_MB = 1_000_000


class Progress(Protocol):
    def at(self, done_bytes: int, total_bytes: int) -> None:
        """`total_bytes` is 0 while unknown."""
        ...

    def close(self) -> None: ...


class Bar:
    """Redraws one line, at most ten times a second, after the first two seconds."""

    def __init__(self, label: str, out: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        self._label, self._out, self._clock = label, out, clock
        self._began_s = clock()
        self._drawn_s = float("-inf")
        self._last = (0, 0)

    def at(self, done_bytes: int, total_bytes: int) -> None:
        self._last = (done_bytes, total_bytes)
        now_s = self._clock()
        if now_s - self._began_s >= _PATIENCE_S and now_s - self._drawn_s >= _REDRAW_S:
            self._drawn_s = now_s
            self._draw()

    def close(self) -> None:
        if self._drawn_s >= self._began_s:
            self._draw()
            self._out.write("\n")

    def _draw(self) -> None:
        done, total = self._last
        full = _BAR_CELLS * done // total if total else 0
        cells = "━" * full + "╌" * (_BAR_CELLS - full)
        self._out.write(f"\r\x1b[K{self._label:<44} {cells} {done / _MB:.0f} of {total / _MB:.0f} MB")
        self._out.flush()


class Lines:
    """A line after two seconds, and then every ten."""

    def __init__(self, label: str, out: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        self._label, self._out, self._clock = label, out, clock
        self._next_s = clock() + _PATIENCE_S

    def at(self, done_bytes: int, total_bytes: int) -> None:
        if self._clock() < self._next_s:
            return
        self._next_s = self._clock() + _LINE_S
        self._out.write(f"  {self._label}: {done_bytes / _MB:.0f} of {total_bytes / _MB:.0f} MB\n")
        self._out.flush()

    def close(self) -> None:
        pass


def progress(label: str) -> Progress:
    return Bar(label, sys.stderr) if sys.stderr.isatty() else Lines(label, sys.stderr)
