"""vad → asr: audio and its probabilities of speech in, whole utterances out, cut at pauses; silence is dropped."""

from typing import cast

import numpy as np
from numpy.typing import NDArray

from engines.models import InvalidInput
from engines.parameters import Parameters
from engines.payloads import Payload, audio

RATE = 16_000
WINDOW_MS = 32
SPEECH_PROBABILITY = 0.5
QUIET_PROBABILITY = 0.35
"""Speech has begun above the one and pauses below the other, so that it does not flicker in between."""
PADDING_WINDOWS = 320 // WINDOW_MS
"""Kept before the first and after the last sound: soft consonants score low."""
PAUSE_WINDOWS = 800 // WINDOW_MS
LONGEST_WINDOWS = 28_000 // WINDOW_MS
"""What the recogniser takes in one piece."""


class SpeechSegments:
    """One request's audio. Utterances carry `start_s`, their place in the stream; no window is in two of them."""

    def __init__(self, parameters: Parameters) -> None:
        self._speaking = False
        self._quiet_windows = 0
        self._probabilities: list[float] = []
        self._windows: list[NDArray[np.int16]] = []
        self._first_window = 0
        """The place in the stream of the first held window."""

    def feed(self, payload: Payload) -> list[Payload]:
        probabilities, pcm = payload.arrays.get("probability"), payload.arrays.get("pcm")
        if probabilities is None:
            return []
        if pcm is None:
            raise InvalidInput(
                "pcm: expected activity with its audio, got probabilities alone; ask for Activity(with_audio=True)"
            )
        windows = cast("NDArray[np.int16]", pcm.numpy()).reshape(probabilities.shape[0], -1)
        heard = zip(probabilities.numpy().tolist(), windows, strict=True)
        return [utterance for probability, window in heard for utterance in self._hear(probability, window)]

    def finish(self) -> list[Payload]:
        if not self._speaking:
            return []
        self._speaking = False
        return [self._cut(self._end_of_sound())]

    def _hear(self, probability: float, window: NDArray[np.int16]) -> list[Payload]:
        self._probabilities.append(probability)
        self._windows.append(window)
        if not self._speaking:
            self._speaking = probability >= SPEECH_PROBABILITY
            self._quiet_windows = 0
            if not self._speaking:
                self._drop(len(self._windows) - PADDING_WINDOWS)
            return []
        self._quiet_windows = self._quiet_windows + 1 if probability < QUIET_PROBABILITY else 0
        if self._quiet_windows >= PAUSE_WINDOWS:
            self._speaking = False
            return [self._cut(self._end_of_sound())]
        if len(self._windows) >= LONGEST_WINDOWS:
            return [self._cut_at_the_quietest()]
        return []

    def _end_of_sound(self) -> int:
        return len(self._windows) - max(0, self._quiet_windows - PADDING_WINDOWS)

    def _cut_at_the_quietest(self) -> Payload:
        """In the later half, so that both parts are long enough to be understood."""
        half = len(self._windows) // 2
        utterance = self._cut(half + int(np.argmin(self._probabilities[half:])))
        self._speaking = max(self._probabilities) >= SPEECH_PROBABILITY
        return utterance

    def _cut(self, end: int) -> Payload:
        pcm = np.concatenate(self._windows[:end]).tobytes()
        utterance = audio(pcm, RATE)
        start_s = self._first_window * WINDOW_MS / 1_000
        self._drop(end)
        return Payload(arrays=utterance.arrays, attributes={**utterance.attributes, "start_s": start_s})

    def _drop(self, count: int) -> None:
        if count > 0:
            del self._windows[:count], self._probabilities[:count]
            self._first_window += count
