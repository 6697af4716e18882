"""What a session says, for tests without an edge: each event is one message that holds its name."""

from sessions.voice import events
from sessions.voice.config import VoiceConfig
from sessions.voice.teller import Bearer, Said


class PlainTeller:
    def __init__(self, session_id: str, config: VoiceConfig, state: bytes) -> None:
        self._seq = 0

    @property
    def seq(self) -> int:
        return self._seq

    def begin(self, fence: int, seq: int | None = None) -> None:
        self._seq = self._seq if seq is None else seq

    def write(self, event: events.Event, bearer: Bearer | None) -> tuple[Said, ...]:
        if isinstance(event, events.Resumed | events.Reopened | events.Recognised | events.AnswerForgone):
            return ()
        self._seq += 1
        text = type(event).__name__.encode()
        return (Said(self._seq, text, None if isinstance(event, events.AudioDelta) else text),)

    def state(self) -> bytes:
        return b""
