"""Turns that have ended and whose answers have yet to begin."""

import asyncio

from engines.requests import RequestFailed
from sessions.voice.answer import Answer
from sessions.voice.answer_timing import SpokenTurn
from sessions.voice.answers import Answers
from sessions.voice.commands import CommandRefused, CreateResponse
from sessions.voice.dispute import Dispute
from sessions.voice.events import AnswerForgone, SessionError
from sessions.voice.items import OutputAudio, OutputText
from sessions.voice.playout import Heard
from sessions.voice.recognition import Transcript
from sessions.voice.state import VoiceState
from sessions.voice.turn import Turn

Transcribing = asyncio.Task[Transcript | RequestFailed]


class EndedTurn:
    """Ended at these times of the clock. `before` has had no answer either when this one ended: one answer covers both."""

    def __init__(self, turn: Turn, transcribing: Transcribing, ended_at: float, decided_at: float) -> None:
        self.turn = turn
        self.transcribing = transcribing
        self.ended_at = ended_at
        self.decided_at = decided_at
        self.before: EndedTurn | None = None
        self.answering: asyncio.Task[None] | None = None
        self.answer: Answer | None = None


class DueAnswers:
    """At most one is due at a time. What interrupts before anything was heard of it takes the debt over; when that turns out to
    have been nothing, it hands it back."""

    def __init__(self, state: VoiceState, answers: Answers, dispute: Dispute) -> None:
        self._state = state
        self._answers = answers
        self._dispute = dispute
        self._due: EndedTurn | None = None
        self._answered: EndedTurn | None = None
        """The turn whose answer began last."""
        self._overtaken: EndedTurn | None = None
        """Left without an answer by the turn in progress."""

    @property
    def waiting(self) -> bool:
        return self._due is not None

    def forget(self) -> bool:
        """None is to follow the turns until now. False: none was to."""
        was_owed = (self._due or self._overtaken) is not None
        self._due = self._answered = self._overtaken = None
        return was_owed

    def forget_overtaken(self) -> None:
        """Whoever ended the turn in progress knows what is to follow."""
        self._overtaken = None

    def interrupt(self) -> tuple[Heard, ...]:
        """The user speaks, and no answer to what they said before goes on. To be followed by the answers' `cut`."""
        last, overtaken = self._answered, self._due or self._overtaken
        answer = last.answer if last is not None else None
        going_on = answer is not None and answer is self._answers.live() and not answer.stopping
        cleared = self._answers.interrupt()
        if last is not None and answer is not None and _was_unheard(answer, cleared, going_on=going_on):
            overtaken, last.answer = last, None
        self.forget()
        self._overtaken = overtaken
        return cleared

    def owe(self, ended: EndedTurn) -> None:
        """Its answer begins when its words and the floor allow it."""
        ended.before = self._due or self._overtaken
        self._overtaken = None
        self._expect(ended)

    def hand_back(self) -> None:
        """The turn in progress was none."""
        overtaken, self._overtaken = self._overtaken, None
        if overtaken is not None and self._due is None:
            self._expect(overtaken)

    def _expect(self, ended: EndedTurn) -> None:
        self._due = ended
        if ended.answering is None or ended.answering.done():
            ended.answering = self._state.spawn(self._answer(ended))

    async def _answer(self, ended: EndedTurn) -> None:
        outcome = await ended.transcribing
        await self._dispute.over()
        await self._answers.silence()
        if self._due is not ended or (isinstance(outcome, Transcript) and not outcome.text):
            ended.turn.forget_head_start()
            if self._due is ended:
                self._nothing_was_said(ended)
            return
        try:
            await self._begin(ended, outcome)
        finally:
            if self._due is ended:
                self._due = None

    def _nothing_was_said(self, ended: EndedTurn) -> None:
        self._due = None
        if ended.before is not None and ended.before.answer is None:
            self._expect(ended.before)

    async def _begin(self, ended: EndedTurn, outcome: Transcript | RequestFailed) -> None:
        unheard = outcome if isinstance(outcome, RequestFailed) else None
        transcript = outcome if isinstance(outcome, Transcript) else None
        head_start = await ended.turn.take_head_start()
        spoken = SpokenTurn(ended.ended_at, ended.decided_at, transcript)
        try:
            await self._answers.create(CreateResponse(), spoken, unheard, head_start)
        except CommandRefused as refused:
            if head_start is not None:
                head_start.drop()
            await self._state.emit(SessionError(refused.code, refused.message), AnswerForgone())
            return
        ended.answer, ended.before = self._answers.live(), None
        self._answered = ended


def _was_unheard(answer: Answer, cleared: tuple[Heard, ...], *, going_on: bool) -> bool:
    """Whether nothing of it had reached the user when it was stopped."""
    for heard in cleared:
        if heard.item_id == answer.item.id:
            return heard.audio_ms == 0
    return going_on and not any(_made(part) for part in answer.item.parts if isinstance(part, OutputText | OutputAudio))


def _made(part: OutputText | OutputAudio) -> bool:
    return bool(part.text) if isinstance(part, OutputText) else part.duration_ms > 0
