"""Whether a sound in the microphone is the agent's own voice, told by how loud both are over time.

An echo rises and falls as what was played a moment before, by the same number of decibels less. A voice that speaks over it is
louder than that.
"""

from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

SLOT_MS = 20
COMPARED_SLOTS = 50
COMPARED_MS = COMPARED_SLOTS * SLOT_MS
LAGS = 31
"""0–600 ms: the buffers of both directions, the room, and the way through voice activity."""
EARLY_SLOTS = 1
TAIL_SLOTS = 6
"""An echo is as loud as the loudest of these: slots do not begin together, and a room goes on sounding for 100 ms."""
HANGOVER_SLOTS = 15
"""Voice activity goes on hearing a voice for so long after its last word. Later than that it hears somebody else."""
QUIET_DB = -60.0
"""What lies below is nothing that a loudspeaker could bring back."""
ROOM_DB = -75.0
AUDIBLE_DB = -45.0
LEAST_AUDIBLE_SLOTS = 2
LEAST_CHANGE_DB = 3.0
LEAST_SLOTS = 40
"""With less of the microphone any voice resembles some stretch of what was played: of 400 pairs of voices that have nothing to
do with each other 66 % with 100 ms, 25 % with 400 ms, 5 % with 600 ms, and 1 % with all that is compared."""
SURE_SLOTS = 25
"""Any two sounds rise alike where they begin: whose echo it is shows in how they go on for so long. Before that was asked, 54 of
66 people who began to speak 100–500 ms after the agent, and more softly, were taken for its echo for as long as they spoke."""

LIKENESS = 0.75
"""Echoes of 173 s of speech at −20 and −30 dB, 50–300 ms late, had 0.84 and more in 99 of 100 windows, and 0.66 where the fainter
one came back into a room of −55 dBFS. Of 45 voices over an agent that is not fed back 95 of 100 windows had 0.39 and less."""
FAINTER_DB = 10.0
"""What is nearly as loud as what was played is not taken for an echo: a voice close to the microphone is."""
MARGIN_DB = 6.0
"""A voice that is louder than its echo would be by more is a voice. With 6 dB one at −24 dBFS over an echo at −40 was noticed
after 64 ms (median), one at −32 after 96 ms, and the echoes above seemed a voice 13 times in 173 s, for one window each."""

Levels = NDArray[np.float64]


class Echo(msgspec.Struct, frozen=True):
    """The way of the agent's voice back into the microphone: it arrives `lag` slots late and `gain_db` (below 0) louder.
    `likeness` is the correlation of what was played with what the microphone heard, along this way."""

    likeness: float
    lag: int
    gain_db: float
    is_sure: bool
    """Told by more than the beginning of what was played."""

    @property
    def is_found(self) -> bool:
        return self.likeness >= LIKENESS and self.gain_db <= -FAINTER_DB

    def explains(self, heard: Levels, played: Sequence[float]) -> bool:
        """Whether the microphone hears no more just now than this echo and the room."""
        last = len(played) - self.lag + EARLY_SLOTS
        if max(played[max(last - HANGOVER_SLOTS, 0) : last], default=QUIET_DB) <= QUIET_DB:
            return False
        loudest_db = max(played[max(last - TAIL_SLOTS, 0) : last], default=QUIET_DB)
        microphone = np.maximum(heard[-COMPARED_SLOTS:], ROOM_DB)
        expected_db = max(max(loudest_db, QUIET_DB) + self.gain_db, float(np.percentile(microphone, 10)) + 3.0)
        return _mean_db(microphone[-2:]) - expected_db <= MARGIN_DB


def slot_levels(pcm: bytes, samples_per_slot: int) -> Levels:
    """dBFS of each whole slot of PCM16, counted from the end."""
    samples = np.frombuffer(pcm, "<i2").astype(np.float64) / 32_768
    whole = len(samples) // samples_per_slot * samples_per_slot
    slots = samples[len(samples) - whole :].reshape(-1, samples_per_slot)
    return 10 * np.log10(np.square(slots).mean(axis=1) + 1e-10)


def find_echo(heard: Levels, played: Sequence[float]) -> Echo | None:
    """Both per slot of 20 ms and up to now, the newest last. None where too little was heard or played to tell,
    or there is no echo."""
    heard = _since_silence(heard, played)
    slots = min(len(heard), COMPARED_SLOTS)
    lags = min(LAGS, len(played) - slots)
    if slots < LEAST_SLOTS or lags < 1:
        return None
    microphone = np.maximum(heard[-slots:], ROOM_DB)
    # Row i is what was played i slots earlier than what the microphone hears.
    earlier: Levels = np.lib.stride_tricks.sliding_window_view(np.asarray(played), slots)[::-1][:lags]
    likenesses = _correlations(microphone, np.maximum(earlier, QUIET_DB))
    lag = int(likenesses.argmax())
    audible = earlier[lag] > AUDIBLE_DB
    if audible.sum() < LEAST_AUDIBLE_SLOTS:
        return None
    gains: Levels = (microphone - earlier[lag])[audible]
    began = int(audible.argmax())
    is_sure = slots - began >= SURE_SLOTS or began == 0
    after = began if is_sure else 0
    (likeness,) = _correlations(microphone[after:], np.maximum(earlier[lag : lag + 1, after:], QUIET_DB))
    echo = Echo(float(likeness), lag, float(np.percentile(gains, 40)), is_sure)
    return echo if echo.is_found else None


def _since_silence(heard: Levels, played: Sequence[float]) -> Levels:
    """Before the microphone was first heard it had no echo, where nothing was played by then."""
    missing = COMPARED_SLOTS - len(heard)
    if missing <= 0 or max(played[: max(len(played) - len(heard), 0)], default=0.0) > QUIET_DB:
        return heard
    return np.concatenate([np.full(missing, ROOM_DB), heard])


def _mean_db(levels: Levels) -> float:
    return float(10 * np.log10(np.power(10, levels / 10).mean()))


def _correlations(microphone: Levels, earlier: Levels) -> Levels:
    """[slots] against each row of [lags, slots]; 0 where nothing changes enough to be compared."""
    ours, theirs = microphone - microphone.mean(), earlier - earlier.mean(axis=1, keepdims=True)
    spread, spreads = np.sqrt(np.square(ours).mean()), np.sqrt(np.square(theirs).mean(axis=1))
    changes = (spreads >= LEAST_CHANGE_DB) & (spread >= 1.0)
    return np.where(changes, (theirs @ ours) / len(ours) / np.maximum(spreads * spread, 1e-9), 0.0)
