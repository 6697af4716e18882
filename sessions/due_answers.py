"""Turns that have ended and whose answers have yet to begin."""

import asyncio

from engines.requests import RequestFailed
from sessions.answer_timing import SpokenTurn
from sessions.answers import Answers
from sessions.commands import CommandRefused, CreateResponse
from sessions.dispute import Dispute
from sessions.events import SessionError
from sessions.recognition import Transcript
from sessions.turn import Turn
from sessions.voice_state import VoiceState


class DueAnswers:
    """At most one is due at a time: when the user has spoken on, the answer to what they said last covers all."""

    def __init__(self, state: VoiceState, answers: Answers, dispute: Dispute) -> None:
        self._state = state
        self._answers = answers
        self._dispute = dispute
        self._due = ""

    @property
    def waiting(self) -> bool:
        return self._due != ""

    def forget(self) -> None:
        """None is to follow the turns until now."""
        self._due = ""

    def owe(self, turn: Turn, transcribing: asyncio.Task[Transcript | RequestFailed], ended_at: float, decided_at: float) -> None:
        """The turn has ended, at these times of the clock. Its answer begins when its words and the floor allow it."""
        self._due = turn.item_id
        self._state.spawn(self._answer(turn, transcribing, ended_at, decided_at))

    async def _answer(
        self, turn: Turn, transcribing: asyncio.Task[Transcript | RequestFailed], ended_at: float, decided_at: float
    ) -> None:
        try:
            await self._begin(turn, await transcribing, ended_at, decided_at)
        finally:
            if self._due == turn.item_id:
                self._due = ""

    async def _begin(self, turn: Turn, outcome: Transcript | RequestFailed, ended_at: float, decided_at: float) -> None:
        await self._dispute.over()
        await self._answers.silence()
        unheard = outcome if isinstance(outcome, RequestFailed) else None
        transcript = outcome if isinstance(outcome, Transcript) else None
        if self._due != turn.item_id or (transcript is not None and not transcript.text):
            turn.forget_head_start()
            return
        head_start = await turn.take_head_start()
        try:
            await self._answers.create(CreateResponse(), SpokenTurn(ended_at, decided_at, transcript), unheard, head_start)
        except CommandRefused as refused:
            if head_start is not None:
                head_start.drop()
            await self._state.emit(SessionError(refused.code, refused.message))
