"""Kokoro-82M: a clause of text becomes audio in one piece. Nicer than Piper and about seven times slower."""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import msgspec
import numpy as np
from numpy.typing import NDArray

from engines.models import InvalidInput, Produced
from engines.models.joints import pause_ms
from engines.models.onnx_session import OnnxSession, onnx_session
from engines.models.options import NetworkOptions
from engines.models.spoken_audio import SpokenAudio
from engines.parameters import Parameters, Speech
from engines.payloads import Payload
from engines.phonemes import find_espeak, phonemes
from engines.resampling import Samples

RATE = 24_000
MOST_TOKENS = 509
"""The model takes 512 with the pads around them; a voice has a style for each number of tokens up to 510."""
LONGEST_CLAUSE_CHARS = 2_000
PAD = 0

# espeak-ng's IPA (tied with "^") in the letters that the model was trained on; from misaki's EspeakFallback, hexgrad/misaki.
_COMMON = (
    *(("a^ɪ", "I"), ("a^ʊ", "W"), ("d^ʒ", "ʤ"), ("e^ɪ", "A"), ("t^ʃ", "ʧ"), ("ɔ^ɪ", "Y"), ("ə^l", "ᵊl")),
    *(("ʔn̩", "tn"), ("n̩", "ᵊn"), ("l̩", "ᵊl"), ("ʔ", "t"), ("r", "ɹ"), ("x", "k"), ("ç", "k"), ("ɬ", "l"), ("ʲ", ""), ("ɐ", "ə")),
)
_AMERICAN = (
    *(("o^ʊ", "O"), ("ɜːɹ", "ɜɹ"), ("ɜː", "ɜɹ"), ("ɪə", "iə"), ("ɚɹ", "əɹ"), ("ɚ", "əɹ"), ("ɾ", "T"), ("o", "ɔ"), ("ː", "")),
    *(("e", "A"), ("^", "")),
)
_BRITISH = (("ə^ʊ", "Q"), ("e^ə", "ɛː"), ("iə", "ɪə"), ("ɚ", "ə"), ("e", "A"), ("^", ""))
ACCENTS = {"a": ("en-us", _COMMON + _AMERICAN), "b": ("en-gb", _COMMON + _BRITISH)}
"""By the first letter of a voice's file: espeak-ng's voice and the letters."""


@dataclass(frozen=True)
class Voice:
    """`styles` [510, 256], a row for each number of tokens."""

    language: str
    letters: tuple[tuple[str, str], ...]
    styles: NDArray[np.float32]

    @classmethod
    def read(cls, path: Path) -> "Voice":
        language, letters = ACCENTS[path.stem[0]]
        return cls(language, letters, np.fromfile(path, np.float32).reshape(-1, 256))

    def sounds(self, text: str) -> str:
        sounds = phonemes(text, self.language, tie="^")
        for old, new in self.letters:
            sounds = sounds.replace(old, new)
        return sounds


class _Vocabulary(msgspec.Struct, frozen=True):
    vocab: dict[str, int]


@dataclass(slots=True)
class Narrating:
    speech: Speech
    voice: Voice
    audio: SpokenAudio


class Kokoro:
    """Takes clauses (text); emits PCM16 at Speech.rate, one chunk per clause with its attributes and `clause_final`.

    Weights: inputs `tokens` int64 [1, n], `style` float32 [1, 256], `speed` float32 [1]; output [samples] at 24 kHz. The graph
    draws no noise: a seed changes nothing. `voices` are by file, "af_heart"; requests may also ask for "heart".
    """

    units = "samples"

    def __init__(self, session: OnnxSession, vocabulary: Mapping[str, int], voices: Mapping[str, Voice]) -> None:
        self._session = session
        self._vocabulary = vocabulary
        short = {name.partition("_")[2]: voice for name, voice in voices.items()}
        self._voices = {**short, **voices}

    @classmethod
    def load(cls, directory: Path, options: dict[str, object]) -> "Kokoro":
        """Raises msgspec.ValidationError that names a wrong option, and EspeakMissing."""
        chosen = msgspec.convert(options, NetworkOptions)
        find_espeak()
        vocabulary = msgspec.json.decode((directory / "vocab.json").read_bytes(), type=_Vocabulary).vocab
        voices = {path.stem: Voice.read(path) for path in sorted((directory / "voices").glob("[ab]?_*.bin"))}
        return cls(onnx_session(directory / "model.onnx", chosen.threads), vocabulary, voices)

    def warm_up(self) -> None:
        voice = next(iter(self._voices.values()))
        for text in ("Yes, I can.", "The first sentence may be as long as this one is, so that no buffer grows later."):
            self._speak(text, voice, speed=1.0)

    def open(self, parameters: Parameters) -> Narrating:
        speech = cast(Speech, parameters)
        voice = self._voices.get(speech.voice)
        if voice is None:
            raise InvalidInput(f"voice: expected one of {', '.join(self._voices)}, got {speech.voice!r}")
        return Narrating(speech, voice, SpokenAudio(RATE, speech.rate))

    def reset(self, state: Narrating) -> None:
        state.audio.reset()

    def snapshot(self, state: Narrating) -> Payload:
        return state.audio.snapshot()

    def restore(self, parameters: Parameters, snapshot: Payload) -> Narrating:
        state = self.open(parameters)
        state.audio.restore(snapshot)
        return state

    def batch_key(self, state: Narrating, payload: Payload) -> Hashable:
        """Never shared: the graph takes one text at a time, and no clause should wait for another."""
        return id(state)

    def run(self, batch: Sequence[tuple[Narrating, Payload]]) -> list[list[Produced] | InvalidInput]:
        return [self._narrate(state, payload) for state, payload in batch]

    def flush(self, state: Narrating) -> list[Produced]:
        return state.audio.rest()

    def close(self, state: Narrating) -> None:
        pass

    def _narrate(self, state: Narrating, payload: Payload) -> list[Produced] | InvalidInput:
        if len(payload.text) > LONGEST_CLAUSE_CHARS:
            return InvalidInput(f"text: expected a clause of at most {LONGEST_CLAUSE_CHARS} characters, got {len(payload.text)}")
        samples = self._speak(payload.text, state.voice, state.speech.speed)
        attributes = {**payload.attributes, "clause_final": True}
        return [state.audio.chunk(samples, pause_ms(payload.text), attributes, units=len(samples))]

    def _speak(self, text: str, voice: Voice, speed: float) -> Samples:
        """Samples at 24 kHz; none for a text without anything to speak."""
        tokens = [self._vocabulary[sound] for sound in voice.sounds(text) if sound in self._vocabulary]
        spoken = [self._run(part, voice, speed) for part in self._parts(tokens)]
        return np.concatenate([np.zeros(0, np.float32), *spoken])

    def _parts(self, tokens: list[int]) -> Iterator[list[int]]:
        """At most MOST_TOKENS at a time, cut between words where possible."""
        space = self._vocabulary[" "]
        while len(tokens) > MOST_TOKENS:
            spaces = [index for index in range(1, MOST_TOKENS) if tokens[index] == space]
            cut = spaces[-1] if spaces else MOST_TOKENS
            yield tokens[:cut]
            tokens = tokens[cut:]
        if tokens:
            yield tokens

    def _run(self, tokens: list[int], voice: Voice, speed: float) -> Samples:
        inputs = {
            "tokens": np.array([[PAD, *tokens, PAD]], np.int64),
            "style": voice.styles[len(tokens) - 1][None],
            "speed": np.array([speed], np.float32),
        }
        return self._session.run(None, inputs)[0].ravel()
