"""What a call costs by its rows, learnt from the calls that ran: one curve for each batch key, seconds against rows.

The key says shape and bucket; the device is that of the engine whose model this is.
"""

from collections.abc import Hashable, Mapping
from math import inf

import msgspec

MEMORY = 20
"""A mean is that of all calls until there were so many; from then on a new one weighs one part in so many."""
SURPRISE = 2.0
"""A call counts as at most so many times the mean: a pause of the machine is not the cost of a shape. The second call replaces
the first, when that took more than so many times as long: it may have compiled."""
TRUSTED = 4
"""Calls of a key after which something may be shed for what they cost: the first ones find cold caches, or compile."""
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
        self._fastest: dict[int, float] = {}
        """Of late: what was done in so long can be done in so long."""
        self._bounds: dict[int, float] = {}
        self._believed = 1.0
        self._declined = 0
        self._calls = 0

    def of(self, rows: int) -> float:
        """The mean to expect."""
        answer = self._answers.get(rows)
        if answer is None:
            answer = self._answers[rows] = self._estimate(rows)
        return answer

    def surely(self, rows: int) -> float:
        """It costs no less, as far as is known: 0 when the key was hardly ever measured."""
        if self._calls < TRUSTED:
            return 0.0
        bound = self._bounds.get(rows)
        if bound is None:
            least = _at_least(never_less(self._fastest), rows)
            bound = self._bounds[rows] = min(least, _at_least(self._costs(), rows))
        return bound * self._believed

    def usually(self, rows: int) -> float:
        """The mean, where it does not rest on the prior: 0 when the key was hardly ever measured."""
        return 0.0 if self._calls < TRUSTED else _at_least(self._costs(), rows)

    def doubt(self) -> None:
        """Something was shed because of this cost."""
        self._believed *= DOUBT

    def observe(self, rows: int, took_s: float) -> None:
        self._calls += 1
        mean, calls = self._means.get(rows, took_s), self._weights.get(rows, 0)
        if calls == 1 and took_s * SURPRISE < mean:
            mean = took_s
        else:
            calls = min(calls + 1, MEMORY)
            mean += (min(took_s, SURPRISE * mean) - mean) / calls
        self._means[rows], self._weights[rows] = mean, calls
        fastest = self._fastest.get(rows, took_s)
        self._fastest[rows] = min(took_s, fastest + (min(took_s, SURPRISE * fastest) - fastest) / MEMORY)
        for other, cost in self._means.items():
            if (other < rows and cost > mean) or (other > rows and cost < mean):  # the newer is more likely right
                self._means[other] += (mean - cost) / MEMORY
        self._fitted = {}
        self._answers.clear()
        self._bounds.clear()
        self._believed = 1.0

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
        return _along(costs, rows, self._slope(costs))

    def _slope(self, costs: Mapping[int, float]) -> float:
        """Seconds a row. After one size alone it is that of the prior, in proportion."""
        low, high = min(costs), max(costs)
        return _rise(costs) if low < high else costs[low] * self._prior.row_s / self._prior.of(low)

    def _costs(self) -> dict[int, float]:
        if not self._fitted and self._means:
            self._fitted = not_falling(self._means, self._weights)
        return self._fitted


def _along(costs: Mapping[int, float], rows: int, slope: float) -> float:
    """Between measured sizes on the straight line, beyond them on that of `slope`."""
    if rows in costs:
        return costs[rows]
    low, high = min(costs), max(costs)
    if rows > high:
        return costs[high] + slope * (rows - high)
    if rows < low:  # at best a batch costs as much as its rows one by one
        return max(costs[low] - slope * (low - rows), costs[low] * rows / low)
    below = max(size for size in costs if size < rows)
    above = min(size for size in costs if size > rows)
    return costs[below] + (costs[above] - costs[below]) * (rows - below) / (above - below)


def _rise(costs: Mapping[int, float]) -> float:
    """Of the line through the least and the greatest size, in seconds a row."""
    low, high = min(costs), max(costs)
    return (costs[high] - costs[low]) / (high - low)


def _at_least(costs: Mapping[int, float], rows: int) -> float:
    """After one size alone, or where the line may end, only what holds in any case: more rows cost no less, and a batch costs at
    best as much as its rows one by one."""
    low, high = min(costs), max(costs)
    if rows >= high:
        return costs[high]
    return costs[low] * rows / low if low == high else _along(costs, rows, _rise(costs))


def never_less(fastest: Mapping[int, float]) -> dict[int, float]:
    """What a batch was done in, a smaller one can be done in."""
    bound, bounds = inf, dict[int, float]()
    for size in sorted(fastest, reverse=True):
        bound = bounds[size] = min(bound, fastest[size])
    return bounds


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
