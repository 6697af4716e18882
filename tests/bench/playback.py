"""What a listener would have heard, from when audio arrived."""

import msgspec
import numpy as np

from recordings import RATE, frame_energy

VOICED_RMS = 0.01


class Arrival(msgspec.Struct, frozen=True):
    at: float
    pcm: bytes


def is_voiced(pcm: bytes) -> bool:
    """Whether any 10 ms of it is louder than room noise."""
    samples = np.frombuffer(pcm, "<i2").astype(np.float32) / np.float32(32768)
    energy = frame_energy(samples, RATE // 100)
    return bool(len(energy)) and float(energy.max()) > VOICED_RMS


def seconds(pcm: bytes) -> float:
    return len(pcm) / 2 / RATE


def underruns(arrivals: list[Arrival]) -> int:
    """How often a player that starts at the first arrival runs dry before the next one."""
    count, empty_at = 0, None
    for arrival in arrivals:
        if empty_at is not None and arrival.at > empty_at:
            count += 1
        empty_at = max(empty_at or arrival.at, arrival.at) + seconds(arrival.pcm)
    return count
