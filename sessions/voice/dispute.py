"""The user makes a sound while the agent has the floor: the agent waits until it is known whether they take it."""

import asyncio

from engines.requests import RequestFailed
from sessions.voice.agent_voice import AgentVoice
from sessions.voice.answers import Answers
from sessions.voice.audio_buffer import SAMPLES_PER_MS, AudioBuffer
from sessions.voice.interruption import Utterance, Verdict, guards, judge
from sessions.voice.recognition import Transcript, recognise
from sessions.voice.state import VoiceState
from sessions.voice.turn import Turn
from sessions.voice.turns import TurnDetector

LONGEST_HOLD_MS = 2_000
"""Sound of which it is not known for so long whether it interrupts keeps the agent no longer."""
LONGEST_WAIT_S = 3.0
"""Nor does sound that breaks off, as a client that is muted may send nothing at all: this one is real time."""
HEARD_MS = 4_000
"""Of sound that goes on only its end is recognised: longer than it goes on between two questions."""
NEARLY_OVER_MS = 500
"""Who utters a "yes" while less is left of what the agent says answers it."""


class Dispute:
    """One at a time, about the turn in progress."""

    def __init__(self, state: VoiceState, buffer: AudioBuffer, answers: Answers, agent: AgentVoice) -> None:
        self._state = state
        self._buffer = buffer
        self._answers = answers
        self._agent = agent
        self._guards = guards(state.settings)
        self._over = asyncio.Event()
        self._over.set()

    def begin(self, detector: TurnDetector) -> None:
        """No silence ends the turn before it is confirmed."""
        detector.held_open = True
        self._over.clear()

    def end(self) -> None:
        self._over.set()

    def release(self) -> None:
        """The agent need not wait for a verdict."""
        self._over.set()
        self._state.playout.resume()

    async def over(self) -> None:
        """Returns when the agent need not wait, any more."""
        try:
            async with asyncio.timeout(LONGEST_WAIT_S):
                await self._over.wait()
        except TimeoutError:
            self.release()

    def judge(self, turn: Turn, detector: TurnDetector, words: str | None = None, *, unopposed: bool = False) -> Verdict:
        """`unopposed`: the agent has given up the floor meanwhile."""
        question = turn.question
        if detector.lasts_ms > LONGEST_HOLD_MS:
            self.release()
        utterance = Utterance(
            voiced_ms=detector.voiced_ms,
            over=detector.pausing,
            asked_ms=question.voiced_ms,
            words=words,
            unknowable=question.failed or question.waited_ms(detector.now_ms) >= self._state.settings.interruption_words_ms,
            saying=self._answers.said(*self._agent.sounded(self._asked_from(turn, detector))),
            goes_on=self._answers.live() is not None or self._agent.remains_ms() >= NEARLY_OVER_MS,
            sounding_ms=self._agent.sounding_ms,
            echo_known=self._agent.is_known,
            unopposed=unopposed,
        )
        return judge(utterance, self._guards)

    async def words(self, turn: Turn, detector: TurnDetector) -> Transcript | RequestFailed:
        """What has been said of the turn, lately."""
        if turn.recogniser is not None:
            return await turn.recogniser.outcome()
        said = self._buffer.between(self._asked_from(turn, detector), detector.now_ms * SAMPLES_PER_MS)
        return await recognise(self._state, said, speech_only=True)

    def _asked_from(self, turn: Turn, detector: TurnDetector) -> int:
        return max(turn.start, (detector.now_ms - HEARD_MS) * SAMPLES_PER_MS)
