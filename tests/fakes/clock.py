"""A monotonic clock that stands still until a test moves it, and sleeps by it."""

import asyncio
import heapq
import itertools


class Clock:
    """`clock()` in seconds, `now_us` the same in whole microseconds."""

    def __init__(self, now_s: float = 1_000.0) -> None:
        self.now_s = now_s
        self._sleepers: list[tuple[float, int, asyncio.Event]] = []
        self._number = itertools.count()

    def __call__(self) -> float:
        return self.now_s

    def now_us(self) -> int:
        return round(self.now_s * 1e6)

    async def sleep(self, seconds: float) -> None:
        over = asyncio.Event()
        heapq.heappush(self._sleepers, (self.now_s + seconds, next(self._number), over))
        await over.wait()

    async def advance(self, seconds: float) -> None:
        """Everybody who wakes meanwhile does so at his time, and what he then does at once is done."""
        until_s = self.now_s + seconds
        await _settled()
        while self._sleepers and self._sleepers[0][0] <= until_s:
            self.now_s, _, over = heapq.heappop(self._sleepers)
            over.set()
            await _settled()
        self.now_s = until_s


async def _settled() -> None:
    for _ in range(20):
        await asyncio.sleep(0)
