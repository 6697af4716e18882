"""Turn-taking as a pure function over speech probabilities, one per 32 ms window. No clock, no audio, no tasks."""

from typing import TypeAlias

import msgspec

from sessions.voice.config import SemanticVad, ServerVad
from sessions.voice.settings import VoiceSettings

WINDOW_MS = 32
OVER_MS = 96
"""Silence after which an utterance may be over. Shorter gaps are inside words."""


class TurnPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """What the detector decides by. `finished_silence_ms` equal to `unfinished_silence_ms` means by silence alone."""

    threshold: float
    release: float
    onset_windows: int
    hold_threshold: float
    hold_windows: int
    minimum_speech_ms: int
    prefix_padding_ms: int
    maximum_turn_ms: int
    pause_ms: int
    hint_finished: float
    hint_unfinished: float
    finished_silence_ms: int
    unfinished_silence_ms: int

    def silence_ms(self, finished: float) -> float:
        """The silence that ends a turn of which the end-of-turn model says `finished`, a probability."""
        span = max(self.hint_finished - self.hint_unfinished, 1e-9)
        unsure = min(max((self.hint_finished - finished) / span, 0.0), 1.0)
        return self.finished_silence_ms + unsure * (self.unfinished_silence_ms - self.finished_silence_ms)


def turn_policy(detection: ServerVad | SemanticVad, settings: VoiceSettings) -> TurnPolicy:
    if isinstance(detection, ServerVad):
        threshold, padding_ms = detection.threshold, detection.prefix_padding_ms
        finished_ms = unfinished_ms = detection.silence_ms
    else:
        threshold, padding_ms = settings.onset_threshold, settings.prefix_padding_ms
        scale = {"low": settings.eagerness_low, "high": settings.eagerness_high}.get(detection.eagerness, 1.0)
        finished_ms = round(settings.finished_silence_ms * scale)
        unfinished_ms = round(settings.unfinished_silence_ms * scale)
    return TurnPolicy(
        threshold=threshold,
        release=max(threshold - settings.release_margin, 0.01),
        onset_windows=settings.onset_windows,
        hold_threshold=min(threshold, settings.hold_threshold),
        hold_windows=settings.hold_windows,
        minimum_speech_ms=settings.minimum_speech_ms,
        prefix_padding_ms=padding_ms,
        maximum_turn_ms=settings.maximum_turn_ms,
        pause_ms=settings.pause_ms,
        hint_finished=settings.hint_finished,
        hint_unfinished=settings.hint_unfinished,
        finished_silence_ms=finished_ms,
        unfinished_silence_ms=unfinished_ms,
    )


class OnsetSuspected(msgspec.Struct, frozen=True):
    """The user may have begun to speak: SpeechBegan or OnsetDenied follows."""


class OnsetDenied(msgspec.Struct, frozen=True):
    """It was a click or a cough: nobody began to speak. `by_loudness`: it was suspected for its loudness."""

    by_loudness: bool = False


class SpeechBegan(msgspec.Struct, frozen=True):
    """`start_ms` includes the prefix padding."""

    start_ms: int


class PauseBegan(msgspec.Struct, frozen=True):
    """Recognise what was said up to here, and whether it sounds finished: `TurnDetector.hint(pause, …)` takes the answer.
    `pause` numbers the pauses of a stream."""

    pause: int
    at_ms: int


class SpeechResumed(msgspec.Struct, frozen=True):
    """The pause was inside the turn: what was recognised during it is stale."""

    pause: int


class TurnEnded(msgspec.Struct, frozen=True):
    """`pause` is the pause that ended it, None when the longest turn was reached."""

    start_ms: int
    speech_end_ms: int
    at_ms: int
    pause: int | None


class TurnDropped(msgspec.Struct, frozen=True):
    """Too little speech to be a turn."""

    at_ms: int


TurnEvent: TypeAlias = OnsetSuspected | OnsetDenied | SpeechBegan | PauseBegan | SpeechResumed | TurnEnded | TurnDropped


class TurnDetector:
    """Hears one window after another. Times are milliseconds of the stream; its first window starts at `origin_ms`."""

    def __init__(self, policy: TurnPolicy, origin_ms: int = 0) -> None:
        self.policy = policy
        """May be replaced at any time; a turn goes on under the new one."""
        self.held_open = False
        """No silence ends the turn while this is so; `silence_decides` then catches up."""
        self._now_ms = origin_ms
        self._last_speech_end_ms = origin_ms
        self._pauses = 0
        self._silence_begins()

    @property
    def now_ms(self) -> int:
        """End of the last window heard."""
        return self._now_ms

    @property
    def lasts_ms(self) -> int:
        """Of the turn in progress, since its onset."""
        return self._now_ms - self._onset_ms

    @property
    def voiced_ms(self) -> int:
        """Of the turn in progress."""
        return self._voiced_ms

    @property
    def pausing(self) -> bool:
        """Silent for so long that what was said may be over, whether or not there was enough speech for a turn."""
        over_ms = max(min(OVER_MS, self.policy.finished_silence_ms), WINDOW_MS)
        return self._start_ms is not None and not self._run and self._now_ms - self._last_speech_end_ms >= over_ms

    @property
    def _pause_ms(self) -> int:
        return max(min(self.policy.pause_ms, self.policy.finished_silence_ms), WINDOW_MS)

    def hear(self, probability: float, *, loud: bool = False) -> list[TurnEvent]:
        """The next window: how probably it is speech. `loud`: somebody may be about to speak, though it is none yet."""
        self._now_ms += WINDOW_MS
        self._run = self._run + 1 if probability >= self.policy.threshold else 0
        if self._start_ms is None:
            return self._wait_for_onset(probability, loud)
        if self.lasts_ms >= self.policy.maximum_turn_ms:
            self._last_speech_end_ms = self._now_ms
            return [self._end_turn(pause=None)]
        if self._is_speech(probability):
            return self._speech_goes_on()
        return self._silence_goes_on()

    def hint(self, pause: int, finished: float) -> list[TurnEvent]:
        """How sure the end-of-turn models are in this pause; a later hint replaces an earlier one, and one for a pause that is
        over is ignored. May end the turn at once."""
        if not self._in_pause or pause != self._pauses:
            return []
        self._needed_silence_ms = self.policy.silence_ms(finished)
        return self._decide()

    def silence_decides(self) -> list[TurnEvent]:
        """The turn may end again. May end it at once."""
        self.held_open = False
        return self._decide() if self._start_ms is not None else []

    def forget(self) -> None:
        """The turn in progress was none. The next one does not reach back into it."""
        self._silence_begins()

    def _silence_begins(self) -> None:
        self._start_ms: int | None = None
        self._onset_ms = self._now_ms
        self._run = 0
        self._suspected = self._was_loud = False
        self._unsuspicious = 0
        self._voiced_ms = 0
        self.held_open = False
        self._leave_pause()

    def _leave_pause(self) -> None:
        self._in_pause = False
        self._needed_silence_ms: float | None = None

    def _wait_for_onset(self, probability: float, loud: bool) -> list[TurnEvent]:
        if self._run < self.policy.onset_windows:
            return self._suspect(probability >= self.policy.hold_threshold, loud)
        self._suspected = self._was_loud = False
        self._onset_ms = self._now_ms - self._run * WINDOW_MS
        self._start_ms = max(self._onset_ms - self.policy.prefix_padding_ms, self._last_speech_end_ms)
        self._voiced_ms = self._run * WINDOW_MS
        self._last_speech_end_ms = self._now_ms
        return [SpeechBegan(self._start_ms)]

    def _suspect(self, like_speech: bool, loud: bool) -> list[TurnEvent]:
        if like_speech or loud:
            self._unsuspicious = 0
            self._was_loud = self._was_loud or loud
            was, self._suspected = self._suspected, True
            return [] if was else [OnsetSuspected()]
        self._unsuspicious += 1
        if not self._suspected or self._unsuspicious < self.policy.hold_windows:
            return []
        was_loud, self._suspected, self._was_loud = self._was_loud, False, False
        return [OnsetDenied(was_loud)]

    def _is_speech(self, probability: float) -> bool:
        silence_ms = self._now_ms - WINDOW_MS - self._last_speech_end_ms
        if silence_ms == 0:
            return probability >= self.policy.release
        if silence_ms < self.policy.pause_ms:
            return self._run > 0
        return self._run >= self.policy.onset_windows

    def _speech_goes_on(self) -> list[TurnEvent]:
        resumed: list[TurnEvent] = [SpeechResumed(self._pauses)] if self._in_pause else []
        silence_ms = self._now_ms - WINDOW_MS - self._last_speech_end_ms
        self._voiced_ms += WINDOW_MS * (self._run if silence_ms >= self.policy.pause_ms else 1)
        self._last_speech_end_ms = self._now_ms
        self._leave_pause()
        return resumed

    def _silence_goes_on(self) -> list[TurnEvent]:
        silence_ms = self._now_ms - self._last_speech_end_ms
        events: list[TurnEvent] = []
        is_turn = self._voiced_ms >= self.policy.minimum_speech_ms
        if is_turn and not self._in_pause and silence_ms >= self._pause_ms:
            self._in_pause = True
            self._pauses += 1
            events.append(PauseBegan(self._pauses, self._now_ms))
        return events + self._decide()

    def _decide(self) -> list[TurnEvent]:
        needed_ms = self.policy.unfinished_silence_ms if self._needed_silence_ms is None else self._needed_silence_ms
        # A run of voiced windows may be a resumption that is not confirmed yet.
        if self.held_open or self._run > 0 or self._now_ms - self._last_speech_end_ms < needed_ms:
            return []
        if self._voiced_ms < self.policy.minimum_speech_ms:
            self._silence_begins()
            return [TurnDropped(self._now_ms)]
        return [self._end_turn(self._pauses)]

    def _end_turn(self, pause: int | None) -> TurnEnded:
        start_ms = self._start_ms if self._start_ms is not None else self._now_ms
        ended = TurnEnded(start_ms, self._last_speech_end_ms, self._now_ms, pause)
        self._silence_begins()
        return ended
