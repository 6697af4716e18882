"""Python reads this first, where the folder stands in PYTHONPATH: its wall clock is CLOCK_AHEAD_S seconds ahead."""

import os
import time

AHEAD_S = float(os.environ["CLOCK_AHEAD_S"])
_right, _right_ns = time.time, time.time_ns
time.time = lambda: _right() + AHEAD_S
time.time_ns = lambda: _right_ns() + round(AHEAD_S * 1e9)
