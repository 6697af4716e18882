"""Cutting long audio at its quietest places, where a cut hurts no word."""

import numpy as np

from engines.models.audio_input import RATE
from engines.resampling import Samples

LONGEST_PIECE_S = 28
"""Whisper hears 30 s at most; the rest stays as room behind the last word."""
FRAME = RATE // 50
QUIET_FRAMES = 10
"""A quiet place is 200 ms long."""


def pieces(samples: Samples) -> list[Samples]:
    """`samples` at 16 kHz in pieces of at most 28 s, each (but the last) at least 14 s long. Joined they are the whole."""
    cut: list[Samples] = []
    longest = LONGEST_PIECE_S * RATE
    while len(samples) > longest:
        end = longest // 2 + _quietest(samples[longest // 2 : longest])
        cut.append(samples[:end])
        samples = samples[end:]
    return [*cut, samples]


def _quietest(samples: Samples) -> int:
    """The middle of the quietest 200 ms."""
    frames = samples[: len(samples) // FRAME * FRAME].reshape(-1, FRAME)
    energy = np.lib.stride_tricks.sliding_window_view(np.mean(frames**2, axis=1), QUIET_FRAMES).sum(axis=1)
    return (int(np.argmin(energy)) + QUIET_FRAMES // 2) * FRAME
