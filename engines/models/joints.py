"""The silence between clauses: a voice's own is trimmed at the front and made the wanted length at the end."""

import numpy as np

from engines.resampling import Samples

SILENCE_LEVEL = 0.004
"""−48 dB. Measured on clauses that begin or end with f, th, h or s: these sounds reach 0.004, both voices' silence 0.0005."""
ONSET_MS = 20
"""Kept before the first sample above the level: the soft beginning of a consonant."""
RELEASE_MS = 40
"""Kept after the last one: the fading end of a vowel."""
SENTENCE_PAUSE_MS, MARK_PAUSE_MS, WORD_PAUSE_MS = 220, 80, 40
"""Voices end clauses with 110 to 530 ms of their own, whatever the mark; people pause about so long."""


def pause_ms(text: str) -> int:
    """The silence after a clause: a breath after a sentence, hardly one inside."""
    last = text.rstrip(" \"')")[-1:]
    if last and last in ".?!":
        return SENTENCE_PAUSE_MS
    return MARK_PAUSE_MS if last and last in ",;:" else WORD_PAUSE_MS


class ClauseJoints:
    """The samples of one request's clauses, in pieces of any size, at `rate` Hz.

    `before_onset`: nothing loud has come of this clause yet; `quiet`: samples since the last loud one.
    """

    def __init__(self, rate: int) -> None:
        self._rate = rate
        self.before_onset = True
        self.quiet = 0

    def reset(self) -> None:
        self.before_onset, self.quiet = True, 0

    def join(self, samples: Samples, pause_ms: int | None) -> Samples:
        """The samples to play. `pause_ms` comes with a clause's last piece: how long the silence after it shall be."""
        if self.before_onset:
            samples = self._from_onset(samples)
        loud = np.flatnonzero(np.abs(samples) > SILENCE_LEVEL)
        self.quiet = len(samples) - 1 - int(loud[-1]) if len(loud) else self.quiet + len(samples)
        if pause_ms is None:
            return samples
        return self._ended(samples, pause_ms)

    def _from_onset(self, samples: Samples) -> Samples:
        loud = np.flatnonzero(np.abs(samples) > SILENCE_LEVEL)
        if not len(loud):
            return samples[:0]
        self.before_onset = False
        return samples[max(0, int(loud[0]) - self._count(ONSET_MS)) :]

    def _ended(self, samples: Samples, pause_ms: int) -> Samples:
        """With as much silence at the end as wanted; what was emitted before cannot be taken back."""
        silent_clause = self.before_onset
        too_long = self.quiet - self._count(max(pause_ms, RELEASE_MS))
        self.before_onset, self.quiet = True, 0
        if silent_clause:
            return samples
        if too_long >= 0:
            return samples[: len(samples) - min(too_long, len(samples))]
        return np.concatenate([samples, np.zeros(-too_long, np.float32)])

    def _count(self, milliseconds: int) -> int:
        return self._rate * milliseconds // 1_000
