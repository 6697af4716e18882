"""A quick mind and a quick mouth for a real server: whatever is heard is answered by a story, spoken as a tone.

Each answer tells of another ship and has the pitch of that, so that a listener can tell of which answer a sound is. What this
measures is the path of the sound; real models are busy for longer.
"""

import asyncio
import math
from collections.abc import AsyncGenerator, Hashable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import numpy as np

from engines.models import InvalidInput, Produced
from engines.models.snapshots import Snapshot, saved
from engines.models.stateless import Stateless
from engines.models.text import TextDelta
from engines.parameters import Generation, Message, Parameters, Speech
from engines.payloads import Payload, audio

HEARD = "Please go on with the story."
SENTENCE = "The {ship} sailed on over the grey sea, and nobody said a word."
"""Four seconds."""
FIRSTS, SECONDS = ("Ba", "De", "Fi", "Go", "Ku", "La", "Me", "Ni"), ("bo", "du", "fa", "ge", "ki", "lo", "mu", "na")
SHIPS = tuple(first + second for first in FIRSTS for second in SECONDS)
WORD_S = 0.02
"""As quick as the default model: some 50 words a second."""
MS_PER_CHARACTER = 65
LOWEST_HZ, STEP_HZ = 200, 30
LOUDNESS = 8_000
KIND = "tones 1"


class Finished(Stateless):
    """The turn stage: every speaker has finished."""

    units = "decisions"

    @classmethod
    def load(cls, directory: Path, options: dict[str, object]) -> "Finished":
        return cls()

    def warm_up(self) -> None: ...

    def batch_key(self, state: None, payload: Payload) -> Hashable:
        return 0

    def run(self, batch: Sequence[tuple[None, Payload]]) -> list[list[Produced] | InvalidInput]:
        return [[Produced(Payload(attributes={"probability": 0.95}), units=1)] for _ in batch]


class Hearing(Stateless):
    """The recogniser: everybody asks for the same."""

    units = "utterances"

    @classmethod
    def load(cls, directory: Path, options: dict[str, object]) -> "Hearing":
        return cls()

    def warm_up(self) -> None: ...

    def batch_key(self, state: None, payload: Payload) -> Hashable:
        return 0

    def run(self, batch: Sequence[tuple[None, Payload]]) -> list[list[Produced] | InvalidInput]:
        return [[self._transcript(payload)] for _, payload in batch]

    def _transcript(self, payload: Payload) -> Produced:
        audio_s = payload.arrays["pcm"].shape[0] / int(payload.attributes["rate"])
        return Produced(Payload(text=HEARD, attributes={"audio_s": audio_s}), units=1)


class Storyteller:
    """The thinker. Option `sentences`: of each answer, 4 s each."""

    def __init__(self, sentences: int) -> None:
        self._sentences = sentences
        self._told = 0

    @classmethod
    def load(cls, directory: Path, options: dict[str, object], slots: int) -> "Storyteller":
        return cls(int(str(options["sentences"])))

    async def warm_up(self) -> None: ...

    async def ending(self, messages: Sequence[Message]) -> float:
        return math.log(0.9)

    async def generate(self, messages: Sequence[Message], parameters: Generation) -> AsyncGenerator[TextDelta, None]:
        self._told += 1
        words = SENTENCE.format(ship=SHIPS[self._told % len(SHIPS)]).split() * self._sentences
        for count, word in enumerate(words, start=1):
            await asyncio.sleep(WORD_S)
            last = count == len(words)
            yield TextDelta(word + " ", 40, 0, count, finish_reason="stop" if last else "")

    async def died(self) -> None:
        await asyncio.Event().wait()

    def shutdown(self) -> None: ...


@dataclass(slots=True)
class Humming:
    """One answer. `samples` have been made so far."""

    rate: int
    pitch_hz: int = LOWEST_HZ
    samples: int = 0


class Tones:
    """The narrator: clauses become a tone as long as their speech would be."""

    units = "samples"

    @classmethod
    def load(cls, directory: Path, options: dict[str, object]) -> "Tones":
        return cls()

    def warm_up(self) -> None: ...

    def open(self, parameters: Parameters) -> Humming:
        return Humming(cast(Speech, parameters).rate)

    def reset(self, state: Humming) -> None:
        state.samples = 0

    def snapshot(self, state: Humming) -> Payload:
        return saved(KIND, rate=state.rate, pitch_hz=state.pitch_hz, samples=state.samples)

    def restore(self, parameters: Parameters, snapshot: Payload) -> Humming:
        known = Snapshot(KIND, snapshot)
        return Humming(known.count("rate"), known.count("pitch_hz"), known.count("samples"))

    def batch_key(self, state: Humming, payload: Payload) -> Hashable:
        return 0

    def run(self, batch: Sequence[tuple[Humming, Payload]]) -> list[list[Produced] | InvalidInput]:
        return [[self._hum(state, payload)] for state, payload in batch]

    def flush(self, state: Humming) -> list[Produced]:
        return []

    def close(self, state: Humming) -> None: ...

    def _hum(self, state: Humming, payload: Payload) -> Produced:
        """The tone goes on where it stopped, so that nothing but the pitch tells two clauses from one."""
        state.pitch_hz = pitch_of(payload.text) or state.pitch_hz
        count = len(payload.text) * MS_PER_CHARACTER * state.rate // 1000
        times = np.arange(state.samples, state.samples + count) / state.rate
        pcm = (np.sin(2 * np.pi * state.pitch_hz * times) * LOUDNESS).astype("<i2").tobytes()
        pts = state.samples / state.rate
        state.samples += count
        sound = audio(pcm, state.rate)
        attributes = {**sound.attributes, **payload.attributes, "clause_final": True}
        return Produced(Payload(arrays=sound.arrays, attributes=attributes), pts, units=count)


def pitch_of(text: str) -> int | None:
    """Of an answer with this in it."""
    return next((LOWEST_HZ + STEP_HZ * number for number, ship in enumerate(SHIPS) if ship in text), None)
