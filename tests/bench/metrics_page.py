"""Histograms of a server's /metrics, of all its nodes together."""

import re

import aiohttp
import msgspec

_BUCKET = re.compile(r'^antiphon_journal_wait_seconds_bucket\{(?:.*,)?le="([^"]+)".*\} (\S+)$', re.MULTILINE)


class Waits(msgspec.Struct, frozen=True):
    """Bound of each bucket in seconds → how many took at most so long."""

    at_most: dict[float, float]

    def __sub__(self, before: "Waits") -> "Waits":
        return Waits({bound: count - before.at_most.get(bound, 0.0) for bound, count in self.at_most.items()})

    @property
    def count(self) -> int:
        return int(max(self.at_most.values(), default=0))

    def percentile_ms(self, share: float) -> float:
        """As if those of a bucket were spread evenly over it."""
        wanted, below_s, below = share * self.count, 0.0, 0.0
        for bound_s, count in sorted(self.at_most.items()):
            if count >= wanted and bound_s != float("inf"):
                part = (wanted - below) / (count - below) if count > below else 1.0
                return round((below_s + part * (bound_s - below_s)) * 1000, 2)
            below_s, below = bound_s, count
        return float("inf")


async def journal_waits(http: aiohttp.ClientSession, url: str) -> Waits:
    async with http.get(f"{url}/metrics") as answer:
        page = await answer.text()
    at_most: dict[float, float] = {}
    for bound, count in _BUCKET.findall(page):
        at_most[float(bound)] = at_most.get(float(bound), 0.0) + float(count)
    return Waits(at_most)
