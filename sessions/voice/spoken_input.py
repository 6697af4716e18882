"""The client's commands about input audio, in manual mode and under voice activity."""

import asyncio
from collections.abc import Sequence

from sessions.voice.answers import Answers
from sessions.voice.audio_buffer import SAMPLES_PER_MS, AudioBuffer
from sessions.voice.commands import CommandRefused
from sessions.voice.config import VoiceConfig
from sessions.voice.events import AudioCleared
from sessions.voice.idle import Idle
from sessions.voice.listening import WINDOW_SAMPLES, Listener
from sessions.voice.recognition import Recogniser
from sessions.voice.spoken_items import SpokenItems
from sessions.voice.state import VoiceState
from sessions.voice.turn_flow import TurnFlow


class SpokenInput:
    def __init__(self, state: VoiceState, spoken_items: SpokenItems, answers: Answers) -> None:
        self._state = state
        self._spoken_items = spoken_items
        self._buffer = AudioBuffer()
        self._flow = TurnFlow(state, self._buffer, spoken_items, answers)
        self._idle = Idle(state, self._buffer, spoken_items, answers)
        self._listener: Listener | None = None
        self._listening: asyncio.Task[None] | None = None

    async def configured(self) -> None:
        """The session opens, or a transport has come."""
        async with self._flow.lock:
            await self._listen_as_configured()

    async def configure(self, config: VoiceConfig) -> None:
        """From here on this is the session's configuration."""
        async with self._flow.lock:
            self._state.config = config
            await self._listen_as_configured()

    async def _listen_as_configured(self) -> None:
        wanted = self._state.config.turn_detection is not None
        if wanted and self._listening is None:
            self._buffer.forget_before(self._buffer.end)
            self._listener = Listener(self._state, self._buffer, self._hear, self._flow.listening_lost)
            self._listening = self._state.spawn(self._listener.run())
        elif wanted:
            self._flow.policy_changed()
        elif self._listening is not None:
            self._stop_listening()
            await self._state.emit(*self._flow.abandon(self._buffer.end))

    async def _hear(self, first: int, probabilities: Sequence[float]) -> None:
        heard = first + len(probabilities) * WINDOW_SAMPLES
        await self._flow.hear(first, probabilities)
        async with self._flow.lock:
            turn = self._flow.turn
            await self._idle.heard(heard, in_turn=self._flow.in_turn, spoken=turn is not None and turn.confirmed.is_set())
            self._flow.forget_silence(heard, self._idle.needs(heard))

    @property
    def in_turn(self) -> bool:
        """The user may be speaking, or an answer is due to them."""
        return self._flow.in_turn

    def forget_answer(self) -> bool:
        """None is to follow what the user has said until now. False: none was to."""
        return self._flow.forget_answer()

    async def settled(self) -> None:
        """Returns when the words of what was said are known."""
        async with self._flow.lock:
            await self._spoken_items.settled()

    async def left(self) -> None:
        """Nobody speaks here any more: what the user was saying becomes an item that no answer follows."""
        async with self._flow.lock:
            self._buffer.forget_odd_byte()
            if self._listening is None:
                return
            self._stop_listening()
            turn = self._flow.turn
            if turn is not None and turn.confirmed.is_set():
                await self._commit_until(turn.start, self._buffer.end)
            else:
                self._flow.abandon(self._buffer.end)

    def append(self, pcm: bytes) -> None:
        """Overflow policy `refuse`. Raises CommandRefused."""
        limit_ms = self._state.settings.maximum_buffer_ms
        oldest = self._listener.heard if self._listener is not None else self._buffer.start
        waiting_ms = (self._buffer.end - oldest + len(pcm) // 2) // SAMPLES_PER_MS
        if waiting_ms > limit_ms:
            message = f"audio: expected at most {limit_ms} ms in the buffer, got {waiting_ms} ms; commit or clear it"
            raise CommandRefused("input_audio_buffer_full", message, "audio")
        self._buffer.append(pcm, self._state.clock())
        if self._listener is not None:
            self._listener.audio_appended()

    async def commit(self) -> None:
        """Everything since the turn began, or since the last commit, becomes a user item. Raises CommandRefused."""
        async with self._flow.lock:
            start, end = self._uncommitted(), self._buffer.end
            duration_ms, least_ms = (end - start) // SAMPLES_PER_MS, self._state.settings.minimum_commit_ms
            if duration_ms < least_ms:
                message = f"input audio buffer: expected at least {least_ms} ms of audio, got {duration_ms} ms"
                raise CommandRefused("input_audio_buffer_commit_empty", message)
            await self._commit_until(start, end)

    async def clear(self) -> None:
        async with self._flow.lock:
            stopped = self._flow.abandon(self._buffer.end)
            self._buffer.forget_odd_byte()
            self._forget_committed()
            await self._state.emit(*stopped, AudioCleared())

    async def _commit_until(self, start: int, end: int) -> None:
        turn = self._flow.turn
        recogniser = Recogniser(self._state, self._buffer.between(start, end), speech_only=False)
        stopped = self._flow.abandon(end)
        self._forget_committed()
        await self._state.emit(*stopped)
        item_id = turn.item_id if turn is not None else self._state.ids("item")
        await self._spoken_items.commit(item_id, (end - start) // SAMPLES_PER_MS, recogniser)

    def _stop_listening(self) -> None:
        if self._listening is not None:
            self._listening.cancel()
        self._listener = self._listening = None

    def _uncommitted(self) -> int:
        """First sample that belongs to no item yet. Under voice activity, silence already heard belongs to none."""
        if self._flow.turn is not None:
            return self._flow.turn.start
        if self._listener is not None:
            return max(self._listener.heard, self._flow.deaf_until)
        return self._buffer.start

    def _forget_committed(self) -> None:
        """The listener still has to feed what it has not heard, so that its windows stay in step."""
        self._buffer.forget_before(self._buffer.end if self._listener is None else self._listener.heard)
