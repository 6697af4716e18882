"""Nobody has said anything for a while after the agent: it speaks again."""

from sessions.answers import Answers
from sessions.audio_buffer import SAMPLES_PER_MS, AudioBuffer
from sessions.commands import CommandRefused, CreateResponse
from sessions.events import IdleTimeout, SessionError
from sessions.recognition import Recogniser
from sessions.spoken_items import SpokenItems
from sessions.voice_config import ServerVad
from sessions.voice_state import VoiceState


class Idle:
    """Time is counted in samples, from where the agent gave up the floor: its answer has ended and has been played."""

    def __init__(self, state: VoiceState, buffer: AudioBuffer, spoken_items: SpokenItems, answers: Answers) -> None:
        self._state = state
        self._buffer = buffer
        self._spoken_items = spoken_items
        self._answers = answers
        self._since: int | None = None

    async def heard(self, until: int, *, in_turn: bool) -> None:
        """Audio up to this sample has been listened to. `in_turn`: the user may be speaking."""
        if self._answers.has_floor:
            self._since = until
        elif in_turn:
            self._since = None
        elif self._since is not None and until - self._since >= self._limit(until):
            since, self._since = self._since, None
            await self._speak_again(since, until)

    def _limit(self, never: int) -> int:
        detection = self._state.config.turn_detection
        limit_ms = detection.idle_timeout_ms if isinstance(detection, ServerVad) else None
        return never + 1 if limit_ms is None else limit_ms * SAMPLES_PER_MS

    async def _speak_again(self, since: int, until: int) -> None:
        """What the detector took for silence is heard once more, and answered whatever it is."""
        item_id = self._state.ids("item")
        self._spoken_items.announce(item_id)
        await self._state.emit(IdleTimeout(item_id, since // SAMPLES_PER_MS, until // SAMPLES_PER_MS))
        recogniser = Recogniser(self._state, self._buffer.between(since, until), speech_only=False)
        await self._spoken_items.commit(item_id, (until - since) // SAMPLES_PER_MS, recogniser)
        try:
            await self._answers.create(CreateResponse())
        except CommandRefused as refused:
            await self._state.emit(SessionError(refused.code, refused.message))
