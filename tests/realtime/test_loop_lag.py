"""The loop's lag is looked at closely while somebody is served, and seldom otherwise."""

import asyncio
from contextlib import suppress

from prometheus_client import CollectorRegistry, Histogram

from realtime.loop_lag import BUSY_INTERVAL_S, IDLE_INTERVAL_S, watch_lag


async def test_it_looks_often_while_somebody_is_served() -> None:
    registry = CollectorRegistry()
    histogram = Histogram("lag", "Lag", registry=registry)
    busy = [False, False, True, True, False]
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)
        if not busy:
            raise asyncio.CancelledError

    with suppress(asyncio.CancelledError):
        await watch_lag(histogram, lambda: busy.pop(0), sleep)
    assert slept == [IDLE_INTERVAL_S, IDLE_INTERVAL_S, BUSY_INTERVAL_S, BUSY_INTERVAL_S, IDLE_INTERVAL_S]
    assert registry.get_sample_value("lag_count") == 4


async def test_a_loop_that_is_held_up_is_late() -> None:
    registry = CollectorRegistry()
    histogram = Histogram("lag", "Lag", registry=registry)

    async def oversleep(seconds: float) -> None:
        if registry.get_sample_value("lag_count"):
            raise asyncio.CancelledError
        until = asyncio.get_running_loop().time() + seconds + 0.01
        while asyncio.get_running_loop().time() < until:
            pass

    with suppress(asyncio.CancelledError):
        await watch_lag(histogram, lambda: True, oversleep)
    assert (registry.get_sample_value("lag_sum") or 0.0) >= 0.01
