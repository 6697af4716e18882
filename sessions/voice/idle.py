"""Nobody has said anything for a while after the agent: it speaks again."""

from sessions.voice.answers import Answers
from sessions.voice.audio_buffer import SAMPLES_PER_MS, AudioBuffer
from sessions.voice.commands import CommandRefused, CreateResponse
from sessions.voice.config import ServerVad
from sessions.voice.events import IdleTimeout, SessionError
from sessions.voice.recognition import Recogniser
from sessions.voice.spoken_items import SpokenItems
from sessions.voice.state import VoiceState

KEPT_MS = 30_000
"""How much of the silence is kept and heard once more: its end, 1.4 MB."""


class Idle:
    """Time is counted in samples, from where the agent gave up the floor: its answer has ended and has been played. What the
    user utters without an answer following starts it anew."""

    def __init__(self, state: VoiceState, buffer: AudioBuffer, spoken_items: SpokenItems, answers: Answers) -> None:
        self._state = state
        self._buffer = buffer
        self._spoken_items = spoken_items
        self._answers = answers
        self._since: int | None = None

    async def heard(self, until: int, *, in_turn: bool, spoken: bool) -> None:
        """Audio up to this sample has been listened to. `in_turn`: the user may be speaking, or is to be answered; `spoken`: it
        is certain that they are speaking."""
        if self._answers.has_floor:
            self._since = until
        elif self._since is None or (spoken and not self._answers_turns):
            self._since = None
        elif in_turn:
            self._since = until
        elif self._limit is not None and until - self._since >= self._limit:
            since, self._since = self._since, None
            await self._speak_again(max(since, self._buffer.start), until)

    def needs(self, until: int) -> int:
        """The first sample that is still needed when audio has been listened to up to `until`."""
        if self._since is None or self._limit is None:
            return until
        return max(self._since, until - KEPT_MS * SAMPLES_PER_MS)

    @property
    def _answers_turns(self) -> bool:
        detection = self._state.config.turn_detection
        return detection is not None and detection.create_response

    @property
    def _limit(self) -> int | None:
        detection = self._state.config.turn_detection
        if not isinstance(detection, ServerVad) or detection.idle_timeout_ms is None:
            return None
        return detection.idle_timeout_ms * SAMPLES_PER_MS

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
