"""From speech probabilities to items and answers: what happens when the user starts, pauses, goes on and ends."""

import asyncio
from collections.abc import Sequence

from engines.requests import RequestFailed
from sessions.voice.agent_voice import AgentVoice
from sessions.voice.answers import Answers
from sessions.voice.audio_buffer import SAMPLES_PER_MS, AudioBuffer
from sessions.voice.config import SemanticVad
from sessions.voice.dispute import Dispute
from sessions.voice.due_answers import DueAnswers, EndedTurn
from sessions.voice.echo import COMPARED_MS
from sessions.voice.events import SpeechStarted, SpeechStopped
from sessions.voice.head_start import HeadStart
from sessions.voice.interruption import Verdict
from sessions.voice.listening import WINDOW_SAMPLES
from sessions.voice.loud_onset import LoudOnset
from sessions.voice.playout import Heard
from sessions.voice.recognition import Recogniser, Transcript
from sessions.voice.spoken_items import SpokenItems
from sessions.voice.state import VoiceState
from sessions.voice.turn import Turn
from sessions.voice.turn_hint import sureness
from sessions.voice.turns import (
    WINDOW_MS,
    OnsetDenied,
    OnsetSuspected,
    PauseBegan,
    SpeechBegan,
    SpeechResumed,
    TurnDetector,
    TurnDropped,
    TurnEnded,
    TurnEvent,
    TurnPolicy,
    turn_policy,
)


class TurnFlow:
    """`lock` serialises all that changes the turn: windows, hints, and the client's commit and clear."""

    def __init__(self, state: VoiceState, buffer: AudioBuffer, spoken_items: SpokenItems, answers: Answers) -> None:
        self.lock = asyncio.Lock()
        self.turn: Turn | None = None
        self.deaf_until = 0
        """Windows that begin before this sample belong to audio that the client has committed or cleared."""
        self._state = state
        self._buffer = buffer
        self._spoken_items = spoken_items
        self._answers = answers
        self._detector: TurnDetector | None = None
        self._agent = AgentVoice(state, buffer)
        self._loud_onset = LoudOnset(state.settings.hold_loudness_db)
        self._dispute = Dispute(state, buffer, answers, self._agent)
        self._due = DueAnswers(state, answers, self._dispute)

    async def hear(self, first: int, probabilities: Sequence[float]) -> None:
        """`first` is the sample where the first window begins."""
        async with self.lock:
            for place, probability in enumerate(probabilities):
                begins = first + place * WINDOW_SAMPLES
                if begins >= self.deaf_until:
                    await self._hear_window(begins, probability)

    @property
    def in_turn(self) -> bool:
        """The user may be speaking, or an answer is due to them."""
        return self.turn is not None or self._due.waiting

    def abandon(self, until: int) -> tuple[SpeechStopped, ...]:
        """Forget the turn in progress, and hear nothing before the sample `until`. Returns what the client is to be told."""
        turn, self.turn = self.turn, None
        if turn is not None:
            turn.forget_pause()
        self._dispute.release()
        self._agent.forget()
        self._due.forget_overtaken()
        self._detector = None
        self.deaf_until = until
        if turn is None or not turn.confirmed.is_set():
            return ()
        return (SpeechStopped(turn.item_id, until // SAMPLES_PER_MS),)

    def forget_answer(self) -> bool:
        """None is to follow the turns until now. False: none was to."""
        return self._due.forget()

    def listening_lost(self) -> None:
        """No more is heard for now."""
        self._dispute.release()

    def policy_changed(self) -> None:
        policy = self._policy()
        if self._detector is not None and policy is not None:
            self._detector.policy = policy

    def _policy(self) -> TurnPolicy | None:
        detection = self._state.config.turn_detection
        return None if detection is None else turn_policy(detection, self._state.settings)

    async def _hear_window(self, begins: int, probability: float) -> None:
        policy = self._policy() if self._detector is None else self._detector.policy
        if policy is None:
            return
        if self._detector is None:
            self._detector = TurnDetector(policy, begins // SAMPLES_PER_MS)
        level_db = self._buffer.level_db(begins, begins + WINDOW_SAMPLES)
        self._agent.window(begins + WINDOW_SAMPLES, level_db)
        loud = self._loud_onset.window(level_db)
        is_confirmed = self.turn is not None and self.turn.confirmed.is_set()
        if not is_confirmed and (loud or probability >= policy.hold_threshold) and self._agent.is_all():
            probability, loud = 0.0, False
        for event in self._detector.hear(probability, loud=loud):
            await self._on(event)
        if self.turn is not None and not self.turn.confirmed.is_set():
            await self._judge(self.turn, self._detector)

    def forget_silence(self, heard: int, needed: int) -> None:
        """Keep the turn in progress, or what the padding of the next one and the search for an echo may reach back to; and all
        from the sample `needed` on."""
        policy = self._detector.policy if self._detector is not None else None
        if self.turn is not None or policy is None:
            return
        reach_ms = max(policy.prefix_padding_ms + policy.onset_windows * WINDOW_MS, COMPARED_MS)
        self._buffer.forget_before(min(heard - reach_ms * SAMPLES_PER_MS, needed))

    async def _on(self, event: TurnEvent) -> None:
        match event:
            case OnsetSuspected():
                if self._interrupts():
                    self._state.playout.hold()
            case OnsetDenied(by_loudness):
                if by_loudness:
                    self._loud_onset.distrust()
                self._state.playout.resume()
            case SpeechBegan():
                await self._began(event)
            case TurnEnded():
                await self._ended(event)
            case TurnDropped():
                await self._dropped(event)
            case PauseBegan() | SpeechResumed():
                self._in_turn(event)

    async def _began(self, event: SpeechBegan) -> None:
        self.turn = turn = Turn(self._state.ids("item"), event.start_ms * SAMPLES_PER_MS)
        if self._interrupts() and self._is_agents_floor and self._detector is not None:
            self._dispute.begin(self._detector)
        else:
            await self._confirm(turn)

    @property
    def _is_agents_floor(self) -> bool:
        return self._answers.has_floor or self._due.waiting

    async def _confirm(self, turn: Turn) -> None:
        """The user has the floor."""
        cleared: tuple[Heard, ...] = ()
        if self._interrupts():
            cleared = self._due.interrupt()
        else:
            self._state.playout.resume()
        self._dispute.end()
        turn.confirmed.set()
        self._spoken_items.announce(turn.item_id)
        await self._state.emit(SpeechStarted(turn.item_id, turn.start // SAMPLES_PER_MS))
        await self._answers.cut(cleared)
        if self._detector is not None and self._detector.held_open:
            for event in self._detector.silence_decides():
                await self._on(event)

    def _deny(self, turn: Turn) -> None:
        """It was nothing, and nobody is told."""
        turn.forget_pause()
        self.turn = None
        if self._detector is not None:
            self._detector.forget()
        self._dispute.release()

    async def _judge(self, turn: Turn, detector: TurnDetector, words: str | None = None) -> None:
        question = turn.question
        match self._dispute.judge(turn, detector, words, unopposed=not self._is_agents_floor):
            case Verdict.CONFIRM:
                question.withdraw()
                await self._confirm(turn)
            case Verdict.DENY:
                self._deny(turn)
            case Verdict.ASK if question.waiting is None:
                asking = self._state.spawn(self._ask(turn, detector))
                question.asked(asking, detector.voiced_ms, detector.now_ms)
            case Verdict.ASK | Verdict.WAIT:
                pass

    async def _ask(self, turn: Turn, detector: TurnDetector) -> None:
        heard = await self._dispute.words(turn, detector)
        async with self.lock:
            if turn.question.waiting is asyncio.current_task():
                turn.question.answered(failed=isinstance(heard, RequestFailed))
                await self._judge(turn, detector, heard.text if isinstance(heard, Transcript) else None)

    def _interrupts(self) -> bool:
        detection = self._state.config.turn_detection
        return detection is not None and detection.interrupt_response

    def _in_turn(self, event: PauseBegan | SpeechResumed) -> None:
        turn = self.turn
        if turn is None:
            return
        turn.forget_pause()
        if isinstance(event, PauseBegan):
            end = event.at_ms * SAMPLES_PER_MS
            turn.recogniser = Recogniser(self._state, self._buffer.between(turn.start, end), speech_only=True)
            detection = self._state.config.turn_detection
            if isinstance(detection, SemanticVad):
                turn.hint = self._state.spawn(self._hint(turn, turn.recogniser, event.pause, end))
            if detection is not None and detection.create_response and self._state.settings.head_start:
                turn.beginning = self._state.spawn(self._begin_answer(turn, turn.recogniser))

    async def _begin_answer(self, turn: Turn, recogniser: Recogniser) -> HeadStart | None:
        heard = await recogniser.outcome()
        await turn.confirmed.wait()
        await self._answers.silence()
        return self._answers.head_start(heard.text) if isinstance(heard, Transcript) and heard.text else None

    async def _hint(self, turn: Turn, recogniser: Recogniser, pause: int, end: int) -> None:
        start = max(turn.start, end - self._state.settings.hint_audio_ms * SAMPLES_PER_MS)
        sure = await sureness(self._state, recogniser, self._buffer.between(start, end))
        async with self.lock:
            if sure is None or turn.hint is not asyncio.current_task() or self._detector is None:
                return
            turn.hint = None  # From here on this task may end the turn, which cancels the hint.
            for event in self._detector.hint(pause, sure):
                await self._on(event)

    async def _dropped(self, event: TurnDropped) -> None:
        turn, self.turn = self.turn, None
        if turn is not None:
            await self._state.emit(SpeechStopped(turn.item_id, event.at_ms))
            self._due.hand_back()

    async def _ended(self, event: TurnEnded) -> None:
        turn, self.turn = self.turn, None
        if turn is None:
            return
        if not turn.confirmed.is_set():  # A minute of sound in which no words were found.
            self._deny(turn)
            return
        decided_at, speech_end = self._state.clock(), event.speech_end_ms * SAMPLES_PER_MS
        turn.forget_hint()
        recogniser = turn.recogniser
        if recogniser is None:
            recogniser = Recogniser(self._state, self._buffer.between(turn.start, speech_end), speech_only=True)
        arrived_at = self._buffer.arrived_at(speech_end)
        ended_at = decided_at if arrived_at is None else arrived_at
        await self._state.emit(SpeechStopped(turn.item_id, event.speech_end_ms))
        duration_ms = event.speech_end_ms - event.start_ms
        detection = self._state.config.turn_detection
        answer_follows = detection is not None and detection.create_response
        transcribing = await self._spoken_items.commit(turn.item_id, duration_ms, recogniser, answer_follows=answer_follows)
        if answer_follows:
            self._due.owe(EndedTurn(turn, transcribing, ended_at, decided_at))
        else:
            turn.forget_head_start()
