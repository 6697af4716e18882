"""How irregularly packets arrive, and how long a hole among them is therefore worth waiting for. Pure."""

import math

LEAST_DELAY_S = 0.02
MOST_DELAY_S = 0.06
WINDOW_S = 4.0
"""The quickest packet of so long a time is the measure for the others: at a drift of 300 ppm it is off by 1.2 ms."""
RISE, FALL = 0.25, 1 / 32
"""Of the way to a higher or a lower value, per packet: up within four packets, down within a second."""


class Lateness:
    """`late_s`: by how much packets come later than the quickest of the last seconds do, mostly (the clocks may drift)."""

    def __init__(self, clock_hz: int) -> None:
        self._clock_hz = clock_hz
        self.late_s = 0.0
        self._quickest = _SlidingMinimum()
        self._timestamp: int | None = None
        self._sent_s = 0.0

    @property
    def delay_s(self) -> float:
        """How long to wait for a packet when the one after it has come."""
        return min(max(self.late_s, LEAST_DELAY_S), MOST_DELAY_S)

    def add(self, timestamp: int, arrived_s: float) -> None:
        if self._timestamp is not None:
            self._sent_s += signed(timestamp - self._timestamp) / self._clock_hz
        self._timestamp = timestamp
        transit_s = arrived_s - self._sent_s
        late_s = min(transit_s - self._quickest.add(transit_s, arrived_s), MOST_DELAY_S)
        self.late_s += (late_s - self.late_s) * (RISE if late_s > self.late_s else FALL)

    def begin_anew(self) -> None:
        """The time stamps to come have nothing to do with those before."""
        self._quickest = _SlidingMinimum()
        self._timestamp = None


class _SlidingMinimum:
    """Over the last WINDOW_S, or half of it."""

    def __init__(self) -> None:
        self._before = self._now = math.inf
        self._began_s = -math.inf

    def add(self, value: float, at_s: float) -> float:
        age_s = at_s - self._began_s
        if age_s >= WINDOW_S / 2:
            self._before = self._now if age_s < WINDOW_S else math.inf
            self._now, self._began_s = value, at_s
        self._now = min(self._now, value)
        return min(self._before, self._now)


def signed(ticks: int) -> int:
    """A difference of two time stamps of 32 bits, which wrap."""
    return (ticks + 0x8000_0000 & 0xFFFF_FFFF) - 0x8000_0000
