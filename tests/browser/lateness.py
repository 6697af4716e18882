"""How late each part of an answer was heard, found by looking for the answer's own audio in what was heard."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from browser.ears import QUANTUM, Run
from browser.microphone import RATE

STEP_S = 3 * QUANTUM / RATE
"""8 ms: what the two are compared by."""
WINDOW = round(0.4 / STEP_S)
HOP = round(0.2 / STEP_S)
EARLIER, LATER = round(0.1 / STEP_S), round(0.5 / STEP_S)
"""How far a part may lie from where the ends of the two lead to expect it: jitter buffers hurry after a delay."""
CHANGE_COSTS = 0.3
"""A change of the delay must win this share of agreement: parts that fit anywhere stay with their neighbours."""
GAP_S = 0.06

Mask = NDArray[np.bool_]


def gaps(own: Sequence[Run], heard: Sequence[Run]) -> int:
    """How often the listener had to wait more than 60 ms inside an answer. `own`: the voiced stretches of the answer's audio;
    `heard`: those of the browser's output while it played.
    """
    return int((np.diff(lateness(own, heard)) > GAP_S).sum())


def lateness(own: Sequence[Run], heard: Sequence[Run]) -> NDArray[np.float64]:
    """Seconds by which each part of the answer was heard later than its first sound leads to expect: the cheapest path through
    all delays of all parts.
    """
    wanted, there = _mask(own), _mask(heard)
    most = max(len(there) - len(wanted), 0) + LATER
    delays = np.arange(-EARLIER, most + 1)
    delays_s = (delays * STEP_S).astype(np.float64)
    padded = np.concatenate([np.zeros(EARLIER, dtype=np.bool_), there, np.zeros(most + WINDOW + len(wanted), dtype=np.bool_)])
    cost = np.where(delays == 0, 0.0, CHANGE_COSTS)
    came_from: list[NDArray[np.intp]] = []
    for start in range(0, max(len(wanted) - WINDOW, 0) + 1, HOP):
        window = wanted[start : start + WINDOW]
        views = np.lib.stride_tricks.sliding_window_view(padded[start : start + len(delays) + len(window) - 1], len(window))
        changing = int(cost.argmin())
        stays = cost <= cost[changing] + CHANGE_COSTS
        came_from.append(np.where(stays, np.arange(len(delays)), changing))
        cost = np.where(stays, cost, cost[changing] + CHANGE_COSTS) + (views != window).mean(axis=1)
    return _without_blips(delays_s[_path(int(cost.argmin()), came_from)])


def _without_blips(delays: NDArray[np.float64]) -> NDArray[np.float64]:
    """Medians of five: a delay that holds for less than half a second lies across a hole, not behind it."""
    padded = np.pad(delays, 2, mode="edge")
    return np.median(np.lib.stride_tricks.sliding_window_view(padded, 5), axis=1)


def _path(end: int, came_from: Sequence[NDArray[np.intp]]) -> list[int]:
    path = [end]
    for step in reversed(came_from[1:]):
        path.append(int(step[path[-1]]))
    return path[::-1]


def _mask(runs: Sequence[Run]) -> Mask:
    """One flag for each step from the first voiced one on."""
    if not runs:
        return np.zeros(0, dtype=np.bool_)
    start = runs[0].begin
    mask = np.zeros(round((runs[-1].end - start) / STEP_S) + 1, dtype=np.bool_)
    for run in runs:
        mask[round((run.begin - start) / STEP_S) : round((run.end - start) / STEP_S)] = True
    return mask
