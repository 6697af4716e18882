"""The first half of a Piper voice (VITS): a clause of text becomes latent frames, 11.6 ms each."""

import unicodedata
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import msgspec
import numpy as np
from numpy.typing import NDArray

from engines.models import InvalidInput, Produced
from engines.models.joints import pause_ms
from engines.models.onnx_session import OnnxSession, onnx_session
from engines.models.options import PiperTalkerOptions
from engines.models.snapshots import Snapshot, saved
from engines.parameters import Parameters, Speech
from engines.payloads import Array, Payload, Scalar
from engines.phonemes import find_espeak, phonemes

CHANNELS = 192
SAMPLES_PER_FRAME = 256
NOISE_FRAMES = 512
"""Columns of noise for the latent frames; a clause longer than these 6 s meets them again, which nobody hears."""
DURATION_DRAW, PRIOR_DRAW = 0, 1
KIND = "piper_talker 1"

BEGIN, PAD, END = "^", "_", "$"
LONGEST_CLAUSE_CHARS = 2_000
MOST_PHONEMES = 300
"""In one run of the network: its memory grows with the square of them."""


class _Audio(msgspec.Struct, frozen=True):
    sample_rate: int


class _Espeak(msgspec.Struct, frozen=True):
    voice: str


class _Inference(msgspec.Struct, frozen=True):
    noise_scale: float
    length_scale: float
    noise_w: float


class VoiceFile(msgspec.Struct, frozen=True):
    """What we read of the JSON that comes with every Piper voice."""

    audio: _Audio
    espeak: _Espeak
    inference: _Inference
    phoneme_id_map: dict[str, list[int]]

    @classmethod
    def read(cls, path: Path) -> "VoiceFile":
        return msgspec.json.decode(path.read_bytes(), type=cls)

    def ids(self, sounds: str) -> list[int]:
        """Ids as in Piper's training: begin, each phoneme (NFD) followed by a pad, end. Unknown phonemes are left out."""
        known = [self.phoneme_id_map[sound] for sound in unicodedata.normalize("NFD", sounds) if sound in self.phoneme_id_map]
        pad = self.phoneme_id_map[PAD]
        body = [part for ids in (self.phoneme_id_map[BEGIN], *known) for part in (*ids, *pad)]
        return [*body, *self.phoneme_id_map[END]]


@dataclass(slots=True)
class Talking:
    """One request. `clauses` and `frames` count what has been spoken so far."""

    speech: Speech
    clauses: int = 0
    frames: int = 0


class PiperTalker:
    """Takes clauses (text); emits `frames` float32 [192, t] with the clause's attributes, `clause_final` and `pause_ms` after it;
    a clause of more than MOST_PHONEMES in several chunks.

    The same text, seed and place in the answer always give the same frames.
    """

    units = "frames"

    def __init__(self, session: OnnxSession, voice: VoiceFile, name: str) -> None:
        self._session = session
        self._voice = voice
        self._name = name

    @classmethod
    def load(cls, directory: Path, options: dict[str, object]) -> "PiperTalker":
        """Raises msgspec.ValidationError that names a wrong option, and EspeakMissing."""
        chosen = msgspec.convert(options, PiperTalkerOptions)
        find_espeak()
        session = onnx_session(directory / "encoder.onnx", chosen.threads)
        return cls(session, VoiceFile.read(directory / "voice.json"), chosen.voice)

    def warm_up(self) -> None:
        for text in ("Yes.", "The first sentence may be as long as this one is, so that no buffer grows later."):
            self._speak(self.open(Speech(voice=self._name)), Payload(text=text))

    def open(self, parameters: Parameters) -> Talking:
        speech = cast(Speech, parameters)
        if speech.voice != self._name:
            raise InvalidInput(f"voice: expected {self._name!r}, the voice of this model, got {speech.voice!r}")
        return Talking(speech)

    def reset(self, state: Talking) -> None:
        state.clauses = state.frames = 0

    def snapshot(self, state: Talking) -> Payload:
        return saved(KIND, clauses=state.clauses, frames=state.frames)

    def restore(self, parameters: Parameters, snapshot: Payload) -> Talking:
        state, known = self.open(parameters), Snapshot(KIND, snapshot)
        state.clauses, state.frames = known.count("clauses"), known.count("frames")
        return state

    def batch_key(self, state: Talking, payload: Payload) -> Hashable:
        """Never shared: a batch is no faster on a CPU, and since durations are rounded up, the last bit of a batched sum could
        change a length."""
        return id(state)

    def run(self, batch: Sequence[tuple[Talking, Payload]]) -> list[list[Produced] | InvalidInput]:
        return [self._speak(state, payload) for state, payload in batch]

    def flush(self, state: Talking) -> list[Produced]:
        return []

    def close(self, state: Talking) -> None:
        pass

    def _speak(self, state: Talking, payload: Payload) -> list[Produced] | InvalidInput:
        if len(payload.text) > LONGEST_CLAUSE_CHARS:
            return InvalidInput(f"text: expected a clause of at most {LONGEST_CLAUSE_CHARS} characters, got {len(payload.text)}")
        parts = phoneme_parts(phonemes(payload.text, self._voice.espeak.voice))
        frames = [self._frames(part, state.speech, state.clauses) for part in parts]
        state.clauses += 1
        attributes = {**payload.attributes, "pause_ms": pause_ms(payload.text)}
        last = len(frames) - 1
        return [self._produced(state, part, {**attributes, "clause_final": at == last}) for at, part in enumerate(frames)]

    def _produced(self, state: Talking, frames: NDArray[np.float32], attributes: dict[str, Scalar]) -> Produced:
        pts = state.frames * SAMPLES_PER_FRAME / self._voice.audio.sample_rate
        state.frames += frames.shape[1]
        return Produced(Payload(arrays={"frames": Array.of(frames)}, attributes=attributes), pts, units=frames.shape[1])

    def _frames(self, sounds: str, speech: Speech, clause: int) -> NDArray[np.float32]:
        """[192, t]; no frames when there is nothing to speak."""
        if not sounds:
            return np.zeros((CHANNELS, 0), np.float32)
        ids = np.array([self._voice.ids(_ended(sounds))], np.int64)
        usual = self._voice.inference
        scales = [usual.noise_scale, usual.length_scale / speech.speed, usual.noise_w]
        inputs = {
            "input": ids,
            "input_lengths": np.array([ids.shape[1]], np.int64),
            "scales": np.array(scales, np.float32),
            "duration_noise": drawn_noise(speech.seed, clause, DURATION_DRAW, (1, 2, ids.shape[1])),
            "prior_noise": drawn_noise(speech.seed, clause, PRIOR_DRAW, (1, CHANNELS, NOISE_FRAMES)),
        }
        return self._session.run(["frames"], inputs)[0][0]


def drawn_noise(seed: int, clause: int, draw: int, shape: tuple[int, ...]) -> NDArray[np.float32]:
    """Standard normal noise from a counter: what is drawn depends on (seed, clause, draw) alone."""
    counter = np.array([0, 0, draw, clause], np.uint64)
    key = np.array([seed % 2**64, 0], np.uint64)
    return np.random.Generator(np.random.Philox(counter=counter, key=key)).standard_normal(shape, np.float32)


def phoneme_parts(sounds: str) -> list[str]:
    """At most MOST_PHONEMES each, cut between words where possible; never empty."""
    parts: list[str] = []
    while len(sounds) > MOST_PHONEMES:
        space = sounds.rfind(" ", 1, MOST_PHONEMES)
        cut = space if space > 0 else MOST_PHONEMES
        parts.append(sounds[:cut])
        sounds = sounds[cut:].lstrip()
    return [*parts, sounds]


def _ended(sounds: str) -> str:
    """With a mark at the end, as in training; a clause cut off inside its sentence goes on as after a comma."""
    return sounds if sounds[-1] in ".,;:?!…—" else sounds + ","
