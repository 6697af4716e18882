"""Thinker → talker or narrator, and the intake of both: streamed text becomes clauses of speakable text."""

from engines.clause_cutter import ClauseCutter, Limits, Span
from engines.parameters import Parameters
from engines.payloads import Payload, Scalar
from engines.speakable import speakable

TALKER_PACE = (Limits(mark=12, word=24, most=48), Limits(mark=30, word=60, most=100), Limits(mark=90, word=150, most=200))
"""The first clause must come early, the second before the first has been played, later ones are whole sentences for their melody.
15 characters last about a second; the language model writes 200 to 300 of them in that time."""
NARRATOR_PACE = (
    Limits(mark=12, word=18, most=32),
    Limits(mark=20, word=30, most=48),
    Limits(mark=40, word=60, most=80),
    Limits(mark=60, word=100, most=140),
)
"""For a voice that needs half as long to synthesise a clause as to play it: each may be 1.5 times as long as the one before."""


class SpeakableClauses:
    """Payloads in: `text`, in pieces of any size. Out: one payload per clause, `text` to be spoken, with the attributes
    `clause` (from 0), `written` (the span of the original) and `written_end` (characters of the original up to its end).

    What cannot be spoken belongs to the next clause; at the very end it is a clause with empty text.
    """

    def __init__(self, parameters: Parameters, pace: tuple[Limits, ...] = TALKER_PACE) -> None:
        self._cutter = ClauseCutter(pace)
        self._clauses = 0
        self._written_end = 0

    def feed(self, payload: Payload) -> list[Payload]:
        return [self._clause(span) for span in self._cutter.push(payload.text)]

    def finish(self) -> list[Payload]:
        return [self._clause(span) for span in self._cutter.finish()]

    def _clause(self, span: Span) -> Payload:
        text = speakable(span.text)
        if span.closed and text and text[-1].isalnum():
            text += "."
        self._written_end += len(span.text)
        self._clauses += 1
        attributes: dict[str, Scalar] = {"clause": self._clauses - 1, "written": span.text, "written_end": self._written_end}
        return Payload(text=text, attributes=attributes)


def narrator_clauses(parameters: Parameters) -> SpeakableClauses:
    return SpeakableClauses(parameters, NARRATOR_PACE)
