"""How late the gateway's loop wakes: what every frame of audio suffers too."""

import asyncio

from prometheus_client import Histogram

INTERVAL_S = 0.05


async def watch_lag(histogram: Histogram) -> None:
    loop = asyncio.get_running_loop()
    while True:
        due = loop.time() + INTERVAL_S
        await asyncio.sleep(INTERVAL_S)
        histogram.observe(max(0.0, loop.time() - due))
