"""Where the time of an answer went."""

from collections.abc import Callable, Mapping

import msgspec

from engines.requests import StageTiming
from sessions.voice.events import AnswerTiming
from sessions.voice.recognition import Transcript


class SpokenTurn(msgspec.Struct, frozen=True):
    """What preceded an answer to speech, in the clock's seconds: the end of the user's speech came in at `ended_at`,
    the turn was decided to be over at `decided_at`."""

    ended_at: float
    decided_at: float
    transcript: Transcript | None


class AnswerClock:
    """Notes the first of each; all times count from the end of the user's speech, or from the command."""

    def __init__(self, clock: Callable[[], float], turn: SpokenTurn | None) -> None:
        self._clock = clock
        self._turn = turn
        self._asked_at = turn.ended_at if turn is not None else clock()
        self._ttft_ms: float | None = None
        self._ttfa_ms: float | None = None

    @property
    def heard_ms(self) -> int:
        """How much speech was recognised for this answer."""
        transcript = self._turn.transcript if self._turn is not None else None
        return round(transcript.audio_seconds * 1000) if transcript is not None else 0

    def text_came(self) -> None:
        if self._ttft_ms is None:
            self._ttft_ms = self._since(self._clock())

    def audio_came(self) -> None:
        if self._ttfa_ms is None:
            self._ttfa_ms = self._since(self._clock())

    def timing(self, stages: Mapping[str, StageTiming], audio_ms: float) -> AnswerTiming:
        """To be called when everything is out. `audio_ms` is how much sound the answer has."""
        transcript = self._turn.transcript if self._turn is not None else None
        every = {**(transcript.stages if transcript is not None else {}), **stages}
        return AnswerTiming(
            decision_ms=self._since(self._turn.decided_at) if self._turn is not None else None,
            transcript_ms=self._since(transcript.known_at) if transcript is not None else None,
            ttft_ms=self._ttft_ms,
            ttfa_ms=self._ttfa_ms,
            total_ms=self._since(self._clock()),
            rtf=sum(stage.run_ms for stage in every.values()) / audio_ms if audio_ms else None,
            stages=every,
        )

    def _since(self, time: float) -> float:
        return (time - self._asked_at) * 1000
