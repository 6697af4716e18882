"""Who speaks in the set: the people of the recordings, the voice of the default deployment, and espeak's."""

from functools import cache

import numpy as np

import recordings
from engines.models.piper_decoder import PiperDecoder
from engines.models.piper_talker import PiperTalker
from engines.parameters import Speech
from engines.payloads import Payload
from engines.weights import directory
from recordings import RATE, Samples

ESPEAK = {"espeak": "en-us", "espeak-f": "en-gb+f3"}
SPEAKERS = ("joe", *ESPEAK)
SOURCE_RATE = 22_050


def say(speaker: str, text: str) -> Samples:
    """Begins and ends with the voice."""
    if speaker in ESPEAK:
        return recordings.read_by_espeak(text, ESPEAK[speaker]).samples
    return recordings.trim(_read_by_joe(text))


def passage(sentences: tuple[str, ...]) -> list[Samples]:
    """The agent's voice, one piece for each sentence, each with the silence behind it."""
    return [np.concatenate([say("joe", sentence), np.zeros(RATE // 5, np.float32)]) for sentence in sentences]


@cache
def _models() -> tuple[PiperTalker, PiperDecoder]:
    folder = directory("piper-joe")
    return PiperTalker.load(folder, {}), PiperDecoder.load(folder, {})


@cache
def _read_by_joe(text: str) -> Samples:
    talker, decoder = _models()
    produced = talker.run([(talker.open(Speech(voice="joe")), Payload(text=text))])[0]
    assert isinstance(produced, list), produced
    frames = [np.asarray(each.payload.arrays["frames"].numpy(), np.float32) for each in produced]
    return recordings.resample(np.concatenate([decoder.decode(each) for each in frames]), SOURCE_RATE, RATE)
