"""The probe of spoken conversations: how soon they are answered, whether the sound breaks off, whether they are cut off."""

import asyncio
from collections.abc import Sequence

import numpy as np

from realtime.calibration.person import Turn, person
from realtime.calibration.probe import Bars, Verdict, judged
from realtime.calibration.sound import Utterance
from sessions.admission.seats import VOICE

BARS: Bars = {"turn_p95_ms": 1_200, "underruns": 0, "cut_off_share": 0.05, "unanswered": 0}
"""The README's own. `cut_off_share`: of all questions, those that were answered before they had ended."""
TURNS = 8
"""Each person asks so many questions: one of each."""


class VoiceProbe:
    """`url` is a server that has room for all; each person asks `turns` of the questions, beginning with another one."""

    kind = VOICE

    def __init__(self, url: str, questions: Sequence[Utterance], bars: Bars = BARS, turns: int = TURNS) -> None:
        self._url = url
        self._questions = questions
        self._bars = bars
        self._turns = turns

    async def run(self, sessions: int) -> Verdict:
        everybody = await asyncio.gather(*(self._talk(number) for number in range(sessions)))
        return judged(figures([turn for turns in everybody for turn in turns]), self._bars)

    async def _talk(self, number: int) -> list[Turn]:
        asked = [self._questions[(number + turn) % len(self._questions)] for turn in range(self._turns)]
        async with person(self._url) as one:
            return [await one.ask(utterance) for utterance in asked]


def figures(turns: Sequence[Turn]) -> dict[str, float]:
    """Milliseconds, counts, shares of 1; the latency of those that were answered."""
    latencies = [turn.latency_ms for turn in turns if turn.latency_ms is not None]
    return {
        "turn_p95_ms": round(float(np.percentile(latencies, 95))) if latencies else float("inf"),
        "underruns": sum(turn.underruns for turn in turns),
        "cut_off_share": round(sum(turn.was_cut_off for turn in turns) / len(turns), 3),
        "unanswered": len(turns) - len(latencies),
    }
