"""Thinker → talker or narrator, and the intake of both: streamed text becomes clauses of speakable text."""

from itertools import pairwise

from engines.bridges.spoken_pieces import spoken_pieces
from engines.clause_cutter import ClauseCutter, Limits, Span
from engines.parameters import Parameters
from engines.payloads import Payload, Scalar
from engines.speakable import speakable

TALKER_PACE = (Limits(mark=12, word=14, most=24), Limits(mark=30, word=60, most=100), Limits(mark=90, word=150, most=200))
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

    A clause that would be much longer spoken than written comes in several, which share what was written evenly.
    What cannot be spoken belongs to the next clause; at the very end it is a clause with empty text.
    """

    def __init__(self, parameters: Parameters, pace: tuple[Limits, ...] = TALKER_PACE) -> None:
        self._cutter = ClauseCutter(pace)
        self._most_phonemes = pace[-1].most * 3 // 2
        self._clauses = 0
        self._written_end = 0

    def feed(self, payload: Payload) -> list[Payload]:
        return [clause for span in self._cutter.push(payload.text) for clause in self._spoken(span)]

    def finish(self) -> list[Payload]:
        return [clause for span in self._cutter.finish() for clause in self._spoken(span)]

    def _spoken(self, span: Span) -> list[Payload]:
        text = speakable(span.text)
        if span.closed and text and text[-1].isalnum():
            text += "."
        pieces = spoken_pieces(text, self._most_phonemes)
        ends = [len(span.text) * number // len(pieces) for number in range(len(pieces) + 1)]
        return [self._clause(piece, span.text[start:end]) for piece, (start, end) in zip(pieces, pairwise(ends), strict=True)]

    def _clause(self, text: str, written: str) -> Payload:
        self._written_end += len(written)
        self._clauses += 1
        attributes: dict[str, Scalar] = {"clause": self._clauses - 1, "written": written, "written_end": self._written_end}
        return Payload(text=text, attributes=attributes)


def narrator_clauses(parameters: Parameters) -> SpeakableClauses:
    return SpeakableClauses(parameters, NARRATOR_PACE)
