"""The audio that a client has appended and that may still be needed. Positions are samples since the session began."""

import math
from collections import deque

import numpy as np

from sessions.voice.playout import SILENT_DB

SAMPLE_RATE = 24_000
SAMPLES_PER_MS = SAMPLE_RATE // 1000


class AudioBuffer:
    """PCM16 mono at 24 kHz. Its owner bounds it by refusing appends and by `forget_before`."""

    def __init__(self) -> None:
        self._held = bytearray()
        self._odd_byte = b""
        self._arrivals: deque[tuple[int, float]] = deque()
        self.start = 0
        """Oldest sample held."""
        self.end = 0
        """One past the newest sample."""

    def append(self, pcm: bytes, at: float) -> None:
        """`at` is the clock's time of arrival. An odd byte waits for the next append."""
        joined = self._odd_byte + pcm
        whole = len(joined) // 2 * 2
        self._odd_byte = joined[whole:]
        if whole:
            self._held += joined[:whole]
            self.end += whole // 2
            self._arrivals.append((self.end, at))

    def between(self, start: int, end: int) -> bytes:
        """What is held of the samples [start, end)."""
        first, last = max(start, self.start), min(end, self.end)
        return bytes(self._held[2 * (first - self.start) : 2 * (max(last, first) - self.start)])

    def level_db(self, start: int, end: int) -> float:
        """dBFS of what is held of these samples; SILENT_DB at least."""
        samples = np.frombuffer(self.between(start, end), "<i2").astype(np.float32)
        power = float(samples @ samples) / max(len(samples), 1) / 32_768**2
        return max(10 * math.log10(power), SILENT_DB) if power else SILENT_DB

    def forget_before(self, sample: int) -> None:
        sample = min(max(sample, self.start), self.end)
        del self._held[: 2 * (sample - self.start)]
        self.start = sample
        while len(self._arrivals) > 1 and self._arrivals[0][0] < sample:
            self._arrivals.popleft()

    def forget_odd_byte(self) -> None:
        self._odd_byte = b""

    def arrived_at(self, sample: int) -> float | None:
        """When the append came that brought this sample; None before the first append."""
        for end, at in self._arrivals:
            if sample <= end:
                return at
        return self._arrivals[-1][1] if self._arrivals else None
