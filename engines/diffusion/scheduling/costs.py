"""What a call costs by its rows, learnt from the calls that ran: one curve for each batch key, seconds against rows.

The key says shape and bucket; the device is that of the engine whose model this is.
"""

from collections.abc import Hashable, Mapping

import msgspec

MEMORY = 20
"""A mean is that of all calls until there were so many; from then on a new one weighs one part in so many."""
SURPRISE = 2.0
"""A call counts as at most so many times the mean: a pause of the machine is not the cost of a shape. The second call replaces
the first, when that took more than so many times as long: it may have compiled."""
LUCK = 0.95
"""A call may cost so much of the mean; what would be late even so is surely late."""
DOUBT = 0.9
"""What is shed because of a cost is not measured, one that was too high would stay: each time it is believed less."""
SHORTEST_S = 1e-6
GAIN = 1.05
"""A smaller batch is preferred when it does so many times the rows a second: less is within the noise of the measurements."""
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
        self._weights: dict[int, int] = {}
        self._fitted: dict[int, float] = {}
        """The measured sizes in order, with means that do not fall. Empty: to be fitted anew."""
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
        mean, calls = self._means.get(rows, took_s), self._weights.get(rows, 0)
        if calls == 1 and took_s * SURPRISE < mean:
            mean = took_s
        else:
            calls = min(calls + 1, MEMORY)
            mean += (min(took_s, SURPRISE * mean) - mean) / calls
        self._means[rows], self._weights[rows] = mean, calls
        for other, cost in self._means.items():
            if (other < rows and cost > mean) or (other > rows and cost < mean):  # the newer is more likely right
                self._means[other] += (mean - cost) / MEMORY
        self._fitted = {}
        self._answers.clear()
        self._bounds.clear()
        self._believed = LUCK

    def best(self, sizes: list[int]) -> int:
        """Which of these growing batches does most rows a second. Sometimes the greatest, though it is not: to see whether that
        still holds."""
        best, rate = 0, 0.0
        for index, rows in enumerate(sizes):
            here = rows / self.of(rows)
            if here * GAIN > rate:
                best, rate = index, max(rate, here)
        last = len(sizes) - 1
        if best < last:
            self._declined += 1
            if self._declined % PROBE_AFTER == 0:
                return last
        return best

    def _estimate(self, rows: int) -> float:
        costs = self._costs()
        if not costs:
            return self._prior.of(rows)
        if rows in costs:
            return costs[rows]
        low, high = min(costs), max(costs)
        if rows > high:
            return costs[high] + self._slope(low, high) * (rows - high)
        if rows < low:  # at best a batch costs as much as its rows one by one
            return max(costs[low] - self._slope(low, high) * (low - rows), costs[low] * rows / low)
        below = max(size for size in costs if size < rows)
        above = min(size for size in costs if size > rows)
        return costs[below] + (costs[above] - costs[below]) * (rows - below) / (above - below)

    def _bound(self, rows: int) -> float:
        """Where the prior gave the form, or the line may end, only what holds in any case: more rows cost no less."""
        costs = self._costs()
        if not costs:
            return 0.0
        low, high = min(costs), max(costs)
        if rows >= high:
            return costs[high]
        return costs[low] * rows / low if low == high else self.of(rows)

    def _slope(self, low: int, high: int) -> float:
        """Seconds a row. After one size alone it is that of the prior, in proportion."""
        costs = self._costs()
        if low == high:
            return costs[low] * self._prior.row_s / self._prior.of(low)
        return (costs[high] - costs[low]) / (high - low)

    def _costs(self) -> dict[int, float]:
        if not self._fitted and self._means:
            self._fitted = not_falling(self._means, self._weights)
        return self._fitted


def not_falling(means: Mapping[int, float], weights: Mapping[int, int]) -> dict[int, float]:
    """The nearest that never falls with the rows, by pooling adjacent violators: neighbours out of order share their mean."""
    pools: list[tuple[float, int, int]] = []  # mean, weight, how many sizes
    sizes = sorted(means)
    for size in sizes:
        mean, weight, count = means[size], weights[size], 1
        while pools and pools[-1][0] > mean:
            before, heavier, more = pools.pop()
            mean = (before * heavier + mean * weight) / (heavier + weight)
            weight, count = weight + heavier, count + more
        pools.append((mean, weight, count))
    level = [mean for mean, _, count in pools for _ in range(count)]
    return dict(zip(sizes, level, strict=True))


class CostModel:
    def __init__(self, prior: Prior | None = None) -> None:
        self._prior = prior or Prior()
        self._curves: dict[Hashable, Curve] = {}

    def curve(self, key: Hashable) -> Curve:
        """A new one is not kept before it is measured."""
        return self._curves.get(key) or Curve(self._prior)

    def observe(self, key: Hashable, rows: int, took_s: float) -> None:
        """A call of so many rows took so long. Times of nothing, which some clocks give, teach nothing."""
        if took_s < SHORTEST_S:
            return
        curve = self._curves.pop(key, None) or Curve(self._prior)
        curve.observe(rows, took_s)
        self._curves[key] = curve
        if len(self._curves) > KEYS:
            del self._curves[next(iter(self._curves))]
