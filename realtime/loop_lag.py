"""How late the gateway's loop wakes: what every frame of audio suffers too."""

import asyncio
from collections.abc import Awaitable, Callable

from prometheus_client import Histogram

BUSY_INTERVAL_S = 0.05
IDLE_INTERVAL_S = 2.0
"""While nobody is served: each look wakes a core that could sleep, and the lag that it finds is nobody's."""


async def watch_lag(
    histogram: Histogram, is_busy: Callable[[], bool], sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
) -> None:
    loop = asyncio.get_running_loop()
    while True:
        interval_s = BUSY_INTERVAL_S if is_busy() else IDLE_INTERVAL_S
        due = loop.time() + interval_s
        await sleep(interval_s)
        histogram.observe(max(0.0, loop.time() - due))
