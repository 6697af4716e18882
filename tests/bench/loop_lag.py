"""How late the gateway's loop woke, from its own histogram."""

from collections.abc import Mapping

import aiohttp

from bench.server import Server

NAME = "antiphon_loop_lag_seconds_bucket"
Buckets = Mapping[float, float]
"""Upper bound in seconds → how many were at most so late."""


async def loop_lags(server: Server) -> Buckets:
    """Since the server's start."""
    async with aiohttp.ClientSession() as http, http.get(f"{server.url}/metrics") as answer:
        lines = (await answer.text()).splitlines()
    samples = [line.removeprefix(NAME).split() for line in lines if line.startswith(NAME)]
    return {float(labels.split('"')[1]): float(count) for labels, count in samples}


def quantile_ms(before: Buckets, after: Buckets, share: float) -> float:
    """Of what came between the two, interpolated inside its bucket."""
    counts = {bound: after[bound] - before[bound] for bound in sorted(after)}
    wanted = share * max(counts.values())
    low, below = 0.0, 0.0
    for bound, count in counts.items():
        if count >= wanted and count > below:
            reach = low if bound == float("inf") else low + (bound - low) * (wanted - below) / (count - below)
            return round(reach * 1000, 1)
        low, below = bound, count
    return float("nan")
