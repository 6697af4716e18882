"""A WAV file for Chromium's fake microphone, with the sample at which each utterance in it begins and ends."""

from collections.abc import Iterable
from pathlib import Path

import msgspec
import numpy as np
import soundfile

import recordings
from recordings import Samples, Utterance

RATE = 48_000
LEAD_IN_S = 2.5
"""Silence first: the file runs from when the microphone opens, and the call has yet to connect."""
LEAD_OUT_S = 0.5


class Spoken(msgspec.Struct, frozen=True):
    """Where in the file this utterance is, in seconds."""

    utterance: Utterance
    begin_s: float
    end_s: float


class Script(msgspec.Struct, frozen=True):
    """`samples` at 48 kHz."""

    samples: Samples
    spoken: tuple[Spoken, ...]

    @property
    def seconds(self) -> float:
        return len(self.samples) / RATE


def script(turns: Iterable[tuple[Utterance, float]], lead_in_s: float = LEAD_IN_S) -> Script:
    """Each utterance with the silence after it, in seconds."""
    parts, spoken, length = [_quiet(lead_in_s)], list[Spoken](), int(lead_in_s * RATE)
    for utterance, pause_s in turns:
        said = recordings.resample(utterance.samples, recordings.RATE, RATE)
        spoken.append(Spoken(utterance, length / RATE, (length + len(said)) / RATE))
        parts += [said, _quiet(pause_s)]
        length += len(said) + len(parts[-1])
    return Script(np.concatenate([*parts, _quiet(LEAD_OUT_S)]), tuple(spoken))


def write(path: Path, written: Script) -> Path:
    soundfile.write(path, written.samples, RATE, subtype="PCM_16")
    return path


def _quiet(seconds: float) -> Samples:
    return recordings.resample(recordings.silence(seconds), recordings.RATE, RATE)
