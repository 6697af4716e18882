"""How loud an answer's sound is, slot by slot."""

import math
from collections.abc import Sequence

import numpy as np

from realtime.media.opus_frames import SAMPLES_PER_FRAME
from sessions.voice.playout import SILENT_DB

FULL_SCALE = 32_768.0


class Loudness:
    """Of one answer's PCM16, however it is cut into pieces."""

    def __init__(self) -> None:
        self._rest = b""

    def of(self, pcm: bytes) -> Sequence[float]:
        """dBFS of each slot of 20 ms that is complete now; SILENT_DB where nothing sounds."""
        joined = self._rest + pcm
        slots = len(joined) // (2 * SAMPLES_PER_FRAME)
        whole = slots * SAMPLES_PER_FRAME
        self._rest = joined[2 * whole :]
        samples = np.frombuffer(joined, "<i2", whole).reshape(slots, SAMPLES_PER_FRAME).astype(np.float32)
        return [_decibels(power) for power in np.square(samples).mean(axis=1).tolist()]


def _decibels(power: float) -> float:
    return max(10 * math.log10(power / FULL_SCALE**2), SILENT_DB) if power else SILENT_DB
