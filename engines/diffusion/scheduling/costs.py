"""What a call costs by its rows, learnt from the calls that ran: one curve for each batch key, seconds against rows.

The key says shape and bucket; the device is that of the engine whose model this is.
"""

from collections.abc import Hashable

import msgspec

LEARNT = 0.1
"""The weight of a new measurement beside the mean of those before."""
SURPRISE = 2.0
"""A call counts as at most so many times the mean: a pause of the machine is not the cost of a shape. One that took less than the
mean divided by it replaces the mean: the first call of a shape often compiles or allocates."""
LUCK = 0.95
"""A call may cost so much of the mean; what would be late even so is surely late."""
DOUBT = 0.9
"""What is shed because of a cost is not measured, one that was too high would stay: each time it is believed less."""
KEYS = 512
"""Curves kept; the one that was longest without a call goes first."""
PROBE_AFTER = 64
"""A size of batch that did not pay is tried again after being declined so often."""


class Prior(msgspec.Struct, frozen=True):
    """What a call is taken to cost before any of its key has run. It makes order and batches; nothing is shed because of it."""

    fixed_s: float = 0.005
    row_s: float = 0.001

    def of(self, rows: int) -> float:
        return self.fixed_s + self.row_s * rows


class Curve:
    """Costs of one key in seconds. They never fall with the rows: between sizes that were measured they follow the straight line,
    beyond them the line through the least and the greatest."""

    def __init__(self, prior: Prior) -> None:
        self._prior = prior
        self._means: dict[int, float] = {}
        self._answers: dict[int, float] = {}
        self._bounds: dict[int, float] = {}
        self._believed = LUCK
        self._declined = 0

    def of(self, rows: int) -> float:
        """The mean to expect."""
        answer = self._answers.get(rows)
        if answer is None:
            answer = self._answers[rows] = self._estimate(rows)
        return answer

    def surely(self, rows: int) -> float:
        """It costs no less, as far as is known: 0 when it was never measured."""
        bound = self._bounds.get(rows)
        if bound is None:
            bound = self._bounds[rows] = self._bound(rows)
        return bound * self._believed

    def doubt(self) -> None:
        """Something was shed because of this cost."""
        self._believed *= DOUBT

    def observe(self, rows: int, took_s: float) -> None:
        mean = self._means.get(rows)
        if mean is None or took_s * SURPRISE < mean:
            mean = took_s
        else:
            mean += (min(took_s, SURPRISE * mean) - mean) * LEARNT
        self._means[rows] = mean
        for other, cost in self._means.items():  # the newest is believed: fewer rows cost no more, more rows no less
            if (other < rows and cost > mean) or (other > rows and cost < mean):
                self._means[other] = mean
        self._answers.clear()
        self._bounds.clear()
        self._believed = LUCK

    def best(self, sizes: list[int]) -> int:
        """Which of these growing batches does most rows a second. Sometimes the greatest, though it is not: to see whether that
        still holds."""
        best, rate = 0, 0.0
        for index, rows in enumerate(sizes):
            here = rows / self.of(rows)
            if here > rate:
                best, rate = index, here
        last = len(sizes) - 1
        if best < last:
            self._declined += 1
            if self._declined % PROBE_AFTER == 0:
                return last
        return best

    def _estimate(self, rows: int) -> float:
        means = self._means
        if not means:
            return self._prior.of(rows)
        if rows in means:
            return means[rows]
        low, high = min(means), max(means)
        if rows > high:
            return means[high] + self._slope(low, high) * (rows - high)
        if rows < low:  # at best a batch costs as much as its rows one by one
            return max(means[low] - self._slope(low, high) * (low - rows), means[low] * rows / low)
        below = max(size for size in means if size < rows)
        above = min(size for size in means if size > rows)
        return means[below] + (means[above] - means[below]) * (rows - below) / (above - below)

    def _bound(self, rows: int) -> float:
        """Where the prior gave the form, or the line may end, only what holds in any case: more rows cost no less."""
        means = self._means
        if not means:
            return 0.0
        low, high = min(means), max(means)
        if rows >= high:
            return means[high]
        return means[low] * rows / low if low == high else self.of(rows)

    def _slope(self, low: int, high: int) -> float:
        """Seconds a row. After one size alone it is that of the prior, in proportion."""
        if low == high:
            return self._means[low] * self._prior.row_s / self._prior.of(low)
        return (self._means[high] - self._means[low]) / (high - low)


class CostModel:
    def __init__(self, prior: Prior | None = None) -> None:
        self._prior = prior or Prior()
        self._curves: dict[Hashable, Curve] = {}

    def curve(self, key: Hashable) -> Curve:
        """A new one is not kept before it is measured."""
        return self._curves.get(key) or Curve(self._prior)

    def observe(self, key: Hashable, rows: int, took_s: float) -> None:
        """A call of so many rows took so long. Times of 0 and less, which some clocks give, teach nothing."""
        if took_s <= 0:
            return
        curve = self._curves.pop(key, None) or Curve(self._prior)
        curve.observe(rows, took_s)
        self._curves[key] = curve
        if len(self._curves) > KEYS:
            del self._curves[next(iter(self._curves))]
