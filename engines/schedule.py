"""How much of a stream goes downstream at once: the chunk schedule of an edge, and the cutting itself."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

import msgspec
import numpy as np
from numpy.typing import NDArray


class Growth(msgspec.Struct, frozen=True):
    """Chunks that grow with what lies ahead of the listener. `unit_ms` is how long a unit plays; a chunk has at most `most`
    units, and at most `factor` times as many as the one before it.

    A chunk, with its right context, is never longer than what has been cut before it and is still to be played at that moment,
    unless it has the schedule's first size. So what is made one by one is there in time as long as making, contexts included,
    takes less time than playing; and of a whole stream that came at once, as long as it takes less than half: no chunk more
    than doubles what was cut before. When units come slowly the chunks shrink with the lead, down to the first size.

    Where it cuts depends on the clock: not for stages whose outputs must be equal from run to run.
    """

    factor: float
    most: int
    unit_ms: float

    def __post_init__(self) -> None:
        if not self.factor > 1:
            raise ValueError(f"growth.factor: expected more than 1, got {self.factor}")
        if not self.unit_ms > 0:
            raise ValueError(f"growth.unit_ms: expected more than 0, got {self.unit_ms}")


class ChunkSchedule(msgspec.Struct, frozen=True):
    """`ramp` are the sizes of the first chunks in units (frames, tokens, …); its last size repeats, or with `growth` the sizes
    go on from there. Empty: all at once (full).

    `left_context` units before and `right_context` units after a chunk go with it; a chunk is withheld until its right context
    is there or the stream has ended. Stateful decoders set both to 0.
    """

    ramp: tuple[int, ...] = ()
    left_context: int = 0
    right_context: int = 0
    growth: Growth | None = None

    def __post_init__(self) -> None:
        if any(size < 1 for size in self.ramp):
            raise ValueError(f"ramp: expected sizes of at least 1, got {self.ramp}")
        if self.left_context < 0 or self.right_context < 0:
            raise ValueError(f"contexts: expected 0 or more, got {self.left_context} and {self.right_context}")
        if self.growth is not None and not self.ramp:
            raise ValueError("ramp: expected at least the first size, from which chunks grow, got none")
        if self.growth is not None and self.growth.most < max(self.ramp):
            raise ValueError(f"growth.most: expected at least {max(self.ramp)}, as in the ramp, got {self.growth.most}")

    @classmethod
    def full(cls) -> "ChunkSchedule":
        return cls()

    @classmethod
    def chunked(cls, initial: int, size: int, left_context: int = 0, right_context: int = 0) -> "ChunkSchedule":
        return cls((initial, size), left_context, right_context)

    def size(self, chunk: int) -> int | None:
        """Units in chunk number `chunk` of the ramp; None: all there are."""
        if not self.ramp:
            return None
        return self.ramp[min(chunk, len(self.ramp) - 1)]


class ChunkSizes:
    """The sizes of one stream's chunks, one after the other. `now_s` are seconds of any clock that never goes back.

    Playback is taken to begin when the first chunk is cut, and to begin again with the next one after it has run dry.
    """

    def __init__(self, schedule: ChunkSchedule) -> None:
        self._schedule = schedule
        self._cut = 0
        self._last_size = 0
        self._began_s = 0.0
        self._units = 0
        """Cut since playback last began."""

    def next(self, now_s: float) -> int | None:
        """Units in the next chunk if it is cut now; None: all there are. Until it is cut, this falls or stays."""
        schedule, growth = self._schedule, self._schedule.growth
        if growth is None or self._cut < len(schedule.ramp):
            return schedule.size(self._cut)
        in_time = math.floor(self._ahead(growth, now_s)) - schedule.right_context
        most = min(growth.most, math.ceil(self._last_size * growth.factor))
        return max(schedule.ramp[0], min(in_time, most))

    def cut(self, units: int, now_s: float) -> None:
        """A chunk of `units` has been cut; at the end of a segment there may be fewer than wanted, or none."""
        if not units:
            return
        self._last_size = self.next(now_s) or units
        growth = self._schedule.growth
        if growth is not None and self._ahead(growth, now_s) <= 0:
            self._began_s, self._units = now_s, 0
        self._cut += 1
        self._units += units

    def _ahead(self, growth: Growth, now_s: float) -> float:
        """Units that have been cut and not been played."""
        return self._units - (now_s - self._began_s) * 1000 / growth.unit_ms


@dataclass(frozen=True)
class Window:
    """`values` [..., left + kept + right]: the chunk's own units lie between its contexts. `final`: the segment ends here."""

    values: NDArray[np.generic]
    left: int
    right: int
    final: bool

    @property
    def units(self) -> int:
        return self.values.shape[-1] - self.left - self.right


class WindowCutter:
    """Cuts one stream, [..., time] at a time, into windows by a schedule.

    A stream may consist of segments (clauses); contexts never cross from one to the next, while the sizes go on:
    by the second segment there is audio in reserve.
    """

    def __init__(self, schedule: ChunkSchedule, clock: Callable[[], float] = time.monotonic) -> None:
        self.inside_segment = False
        """Something came since the last segment ended."""
        self.held_bytes = 0
        """Of what is withheld."""
        self._schedule = schedule
        self._clock = clock
        self._sizes = ChunkSizes(schedule)
        self._pieces: list[NDArray[np.generic]] = []
        """What was withheld: the left context, then `_fresh` units. Copies, since what comes may lie in another process's memory,
        which a view would hold."""
        self._left = 0
        self._fresh = 0

    def push(self, values: NDArray[np.generic], *, segment_end: bool) -> list[Window]:
        """The windows that are now complete. A segment always ends with a window that is `final`, if need be without units."""
        now_s = self._clock()
        self.inside_segment = True
        self._fresh += values.shape[-1]
        if self._due(segment_end, now_s) is None:
            self._pieces.append(values.copy())
            self.held_bytes += values.nbytes
            return []
        held = np.concatenate([*self._pieces, values], axis=-1) if self._pieces else values
        return self._cut(held, segment_end, now_s)

    def end(self) -> list[Window]:
        """The segment ends without anything more; nothing if none has begun."""
        return self._cut(np.concatenate(self._pieces, axis=-1), True, self._clock()) if self.inside_segment else []

    def _due(self, ended: bool, now_s: float) -> int | None:
        """Units of the next window; None: it has to wait for more."""
        size = self._sizes.next(now_s)
        if ended:
            return self._fresh if size is None else min(size, self._fresh)
        if size is None or self._fresh < size + self._schedule.right_context:
            return None
        return size

    def _cut(self, held: NDArray[np.generic], ended: bool, now_s: float) -> list[Window]:
        windows: list[Window] = []
        while (units := self._due(ended, now_s)) is not None:
            final = ended and units == self._fresh
            right = min(self._schedule.right_context, self._fresh - units)
            windows.append(Window(held[..., : self._left + units + right], self._left, right, final))
            self._sizes.cut(units, now_s)
            if final:
                self.inside_segment, self._pieces, self.held_bytes, self._left, self._fresh = False, [], 0, 0, 0
                return windows
            done = self._left + units
            self._left = min(self._schedule.left_context, done)
            self._fresh -= units
            held = held[..., done - self._left :]
        self._pieces, self.held_bytes = [held.copy()], held.nbytes
        return windows
