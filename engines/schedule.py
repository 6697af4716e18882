"""How much of a stream goes downstream at once: the chunk schedule of an edge, and the cutting itself."""

from dataclasses import dataclass

import msgspec
import numpy as np
from numpy.typing import NDArray


class ChunkSchedule(msgspec.Struct, frozen=True):
    """`ramp` are the sizes of the first chunks in units (frames, tokens, …); its last size repeats. Empty: all at once (full).

    `left_context` units before and `right_context` units after a chunk go with it; a chunk is withheld until its right context
    is there or the stream has ended. Stateful decoders set both to 0.
    """

    ramp: tuple[int, ...] = ()
    left_context: int = 0
    right_context: int = 0

    def __post_init__(self) -> None:
        if any(size < 1 for size in self.ramp):
            raise ValueError(f"ramp: expected sizes of at least 1, got {self.ramp}")
        if self.left_context < 0 or self.right_context < 0:
            raise ValueError(f"contexts: expected 0 or more, got {self.left_context} and {self.right_context}")

    @classmethod
    def full(cls) -> "ChunkSchedule":
        return cls()

    @classmethod
    def chunked(cls, initial: int, size: int, left_context: int = 0, right_context: int = 0) -> "ChunkSchedule":
        return cls((initial, size), left_context, right_context)

    def size(self, chunk: int) -> int | None:
        """Units in chunk number `chunk`; None: all there are."""
        if not self.ramp:
            return None
        return self.ramp[min(chunk, len(self.ramp) - 1)]


@dataclass(frozen=True)
class Window:
    """`values` [..., left + kept + right]: the chunk's own units lie between its contexts. `final`: the segment ends here."""

    values: NDArray[np.float32]
    left: int
    right: int
    final: bool


class WindowCutter:
    """Cuts one stream, [channels, time] at a time, into windows by a schedule.

    A stream may consist of segments (clauses); contexts never cross from one to the next, while the ramp goes on:
    by the second segment there is audio in reserve.
    """

    def __init__(self, schedule: ChunkSchedule) -> None:
        self._schedule = schedule
        self._cut = 0
        self._held: NDArray[np.float32] | None = None
        self._left = 0

    def push(self, values: NDArray[np.float32], *, segment_end: bool) -> list[Window]:
        """The windows that are now complete. A segment always ends with a window that is `final`, if need be without units."""
        held = values if self._held is None else np.concatenate([self._held, values], axis=-1)
        windows: list[Window] = []
        while (window := self._next(held, segment_end)) is not None:
            windows.append(window)
            if window.final:
                self._held, self._left = None, 0
                return windows
            done = self._left + window.values.shape[-1] - window.left - window.right
            left = min(self._schedule.left_context, done)
            held, self._left = held[..., done - left :], left
        self._held = held
        return windows

    def _next(self, held: NDArray[np.float32], segment_end: bool) -> Window | None:
        size, wanted_right = self._schedule.size(self._cut), self._schedule.right_context
        fresh = held.shape[-1] - self._left
        if segment_end and (size is None or fresh <= size):
            self._cut += fresh > 0
            return Window(held, self._left, 0, final=True)
        if size is None or (fresh < size + wanted_right and not segment_end):
            return None
        self._cut += 1
        right = min(wanted_right, fresh - size)
        return Window(held[..., : self._left + size + right], self._left, right, final=False)
