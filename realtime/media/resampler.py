"""From one sample rate to another, as the sound comes in: a windowed sinc in polyphase form."""

import math
from functools import cache

import numpy as np
import numpy.typing as npt

CROSSINGS = 24
"""Zero crossings of the sinc on either side, in samples of the lower rate: that much of what follows a sample must be known."""
CUTOFF = 3.75 / 8
"""Middle of the filter's edge as a share of the lower rate: at 8 kHz the telephone's band up to 3.4 kHz stays untouched, and
what lies 100 Hz above the half of the rate is gone (−70 dB)."""
KAISER_BETA = 6.8
BLOCK_SAMPLES = 16
"""Sound goes through in blocks of at least so many samples of the lower rate: fewer calls, little waiting."""
ONE = float(1 << 24)
"""Coefficients are whole multiples of 1/ONE: all sums are then exact in 64-bit floats, so that no grouping changes a bit."""
MOST_PHASES = 1_000
SLICE_BLOCKS = 2_000

_Floats = npt.NDArray[np.float64]


class Resampler:
    """PCM16 little endian, mono. However the input is split, the joined output is the same, to the bit.

    Output sample n lies at the time n / target_hz of the input. It comes `delay_ms` after that at the latest, and after `finish`
    there are as many as the input lasted, rounded. ValueError: the rates have no small ratio.
    """

    def __init__(self, source_hz: int, target_hz: int) -> None:
        divisor = math.gcd(source_hz, target_hz)
        self._up, self._down = target_hz // divisor, source_hz // divisor
        if max(self._up, self._down) > MOST_PHASES:
            raise ValueError(f"rates: expected a ratio of numbers up to {MOST_PHASES}, got {self._up}:{self._down}")
        self._periods = -(-BLOCK_SAMPLES // min(self._up, self._down))
        self._taken = self._periods * self._down
        self._reach = math.ceil(CROSSINGS * max(1.0, self._down / self._up))
        self._filter = _block_filter(self._up, self._down, self._periods, self._reach)
        self.delay_ms = (self._reach + self._taken) * 1000 / source_hz
        self._begin()

    def resample(self, pcm: bytes) -> bytes:
        """What is known by now. An odd number of bytes is a ValueError."""
        if self._up == self._down:
            return pcm
        samples = np.frombuffer(pcm, "<i2").astype(np.float64)
        self._came += len(samples)
        self._held = np.concatenate((self._held, samples))
        made = self._blocks()
        self._made += len(made) // 2
        return made

    def finish(self) -> bytes:
        """The rest. What comes next is another sound, of which nothing is left here."""
        due = (2 * self._came * self._up + self._down) // (2 * self._down)
        self._held = np.concatenate((self._held, np.zeros(self._reach + self._taken)))
        rest = self._blocks()[: 2 * (due - self._made)]
        self._begin()
        return rest

    def _begin(self) -> None:
        self._held: _Floats = np.zeros(self._reach)
        self._came = self._made = 0

    def _blocks(self) -> bytes:
        width = self._taken + 2 * self._reach
        whole = (len(self._held) - 2 * self._reach) // self._taken
        made = [self._slice(start, min(whole - start, SLICE_BLOCKS), width) for start in range(0, whole, SLICE_BLOCKS)]
        self._held = self._held[max(whole, 0) * self._taken :].copy()
        return b"".join(made)

    def _slice(self, start: int, blocks: int, width: int) -> bytes:
        stride = self._held.itemsize
        overlapping = np.ndarray(
            (blocks, width), np.float64, self._held.data, start * self._taken * stride, (self._taken * stride, stride)
        )
        sound = np.rint(np.ascontiguousarray(overlapping) @ self._filter)
        return np.clip(sound, -32_768, 32_767).astype("<i2").tobytes()


@cache
def _block_filter(up: int, down: int, periods: int, reach: int) -> _Floats:
    """(block and its surroundings, output samples of the block)."""
    places = np.arange(-reach, periods * down + reach)[:, None] - np.arange(periods * up)[None, :] * down / up
    cutoff = CUTOFF * min(1.0, up / down)
    inside = np.clip(places / reach, -1, 1)
    window = np.where(np.abs(places) < reach, np.i0(KAISER_BETA * np.sqrt(1 - inside**2)), 0.0)
    impulse = np.sinc(2 * cutoff * places) * window
    return np.rint(impulse / impulse.sum(axis=0) * ONE) / ONE
