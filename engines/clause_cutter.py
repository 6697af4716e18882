"""Cuts text that is still being written into clauses to be spoken, as early as melody allows.

Where it cuts depends on the text alone, never on the pieces in which it arrives: a place is judged when what it is judged by
is there, and places are judged from left to right. Spans are cut before white space, so they join to the text.
"""

import re
from collections.abc import Iterator
from itertools import pairwise

import msgspec

from engines.speakable.abbreviations import ABBREVIATIONS, MAY_END_A_SENTENCE

SHORTEST_CHARS = 12
"""Less sounds clipped, and is played before the next clause can be ready."""
LONGEST_CHARS = 400
"""Without any white space the text is cut here, inside a word."""
LONGEST_LINK_TEXT, LONGEST_LINK_TARGET = 200, 300

_LINK_TEXT = rf"\[[^\[\]\n]{{0,{LONGEST_LINK_TEXT}}}"
_LINK_TARGET = rf"\([^)\n]{{0,{LONGEST_LINK_TARGET}}}"
_WORD = re.compile(rf"(?:{_LINK_TEXT}\](?:{_LINK_TARGET}\))?|\S)+")
"""A run without white space, in which a markdown link counts as one letter."""
_OPEN_LINK = re.compile(rf"{_LINK_TEXT}(?:\](?:{_LINK_TARGET})?)?\Z")

_CLOSERS = r"[\"'”’)\]*_`]*$"
_SENTENCE_END = re.compile(r"[.!?…。！？]" + _CLOSERS)
_CLAUSE_MARK = re.compile(r"(?:[,;:—–]|^-)" + _CLOSERS)
_INITIALS = re.compile(r"(?:[A-Za-z]\.)+$")
_LIST_NUMBER = re.compile(r"(?:^|\n)[ \t]*[0-9]{1,3}[.)]$")
_BEFORE_A_NUMBER = re.compile(r"(?:No|Nos|Fig|Vol|pp?|Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec)\.$", re.IGNORECASE)

CONJUNCTIONS = frozenset(
    ("and", "but", "or", "so", "because", "which", "while", "when", "if", "although", "though", "since", "unless", "where")
)
CLINGING = CONJUNCTIONS | {
    *("a", "an", "the", "this", "that", "my", "your", "our", "their", "its", "no", "not", "very"),
    *("of", "to", "in", "on", "at", "by", "for", "with", "from", "as", "is", "are", "was", "be"),
}
"""Words that no reader stops behind."""


class Limits(msgspec.Struct, frozen=True):
    """From how many characters on a clause may end at a comma or the like (`mark`), before a conjunction (`word`), and after how
    many it is cut between any two words (`most`). The end of a sentence ends it anyway."""

    mark: int
    word: int
    most: int


class Span(msgspec.Struct, frozen=True):
    """A piece of the text. `closed`: a sentence, line or the whole text ends here."""

    text: str
    closed: bool


class ClauseCutter:
    """`pace` holds the limits of the first clauses; its last entry repeats."""

    def __init__(self, pace: tuple[Limits, ...]) -> None:
        self._pace = pace
        self._clauses = 0
        self._rest = ""

    def push(self, text: str) -> list[Span]:
        self._rest += text
        return list(self._spans(at_end=False))

    def finish(self) -> list[Span]:
        """The rest; its last span is closed."""
        spans = list(self._spans(at_end=True))
        if self._rest:
            spans.append(Span(self._rest, closed=True))
            self._rest = ""
        return spans

    def _spans(self, *, at_end: bool) -> Iterator[Span]:
        while (cut := self._next_cut(at_end)) is not None:
            end, closed = cut
            self._clauses += 1
            yield Span(self._rest[:end], closed)
            self._rest = self._rest[end:]

    def _next_cut(self, at_end: bool) -> tuple[int, bool] | None:
        text = self._rest if at_end else _decided(self._rest)
        limits = self._pace[min(self._clauses, len(self._pace) - 1)]
        words = list(_WORD.finditer(text))
        fallback: int | None = None
        for word, following in pairwise(words):
            end = word.end()
            if end > LONGEST_CHARS:
                break
            if not any(map(str.isalnum, text[:end])):
                continue
            length = end - words[0].start()
            if length >= SHORTEST_CHARS and _ends_sentence(text, word, following):
                return end, True
            if length >= limits.mark and _ends_clause(word[0], following[0]):
                return end, False
            if length >= limits.word:
                known = at_end or following.end() < len(text)
                if not known and any(conjunction.startswith(following[0].lower()) for conjunction in CONJUNCTIONS):
                    return None
                if following[0].lower() in CONJUNCTIONS and _may_part(word[0], following[0]):
                    return end, False
            if length > limits.most:
                return fallback or end, False
            if _may_part(word[0], following[0]):
                fallback = end
        return _forced(words, fallback)


def _forced(words: list[re.Match[str]], fallback: int | None) -> tuple[int, bool] | None:
    """No good place within LONGEST_CHARS."""
    if not words or words[-1].end() <= LONGEST_CHARS:
        return None
    between_words = [word.end() for word in words if word.end() <= LONGEST_CHARS]
    return fallback or (between_words[-1] if between_words else LONGEST_CHARS), False


def _decided(text: str) -> str:
    """Up to a bracket that may yet become a link."""
    open_link = _OPEN_LINK.search(text)
    return text[: open_link.start()] if open_link else text


def _ends_sentence(text: str, word: re.Match[str], following: re.Match[str]) -> bool:
    gap = text[word.end() : following.start()]
    if gap.count("\n") > 1 or ("\n" in gap and not following[0][0].islower()):
        return True
    return _SENTENCE_END.search(word[0]) is not None and not _is_abbreviation(text[: word.end()], word[0], following[0][0])


def _is_abbreviation(before: str, word: str, next_character: str) -> bool:
    bare = word.lstrip("([\"'*_“‘")
    if bare in ABBREVIATIONS:
        return bare not in MAY_END_A_SENTENCE or not next_character.isupper()
    if _INITIALS.match(bare):
        return bare.lower() not in ("a.m.", "p.m.") or not next_character.isupper()
    if _BEFORE_A_NUMBER.match(bare):
        return next_character.isdigit()
    return _LIST_NUMBER.search(before) is not None


def _ends_clause(word: str, following: str) -> bool:
    """ "May 3, 2024" and "10, 20" stay together."""
    return _CLAUSE_MARK.search(word) is not None and not (word[-2:-1].isdigit() and following[0].isdigit())


def _may_part(word: str, following: str) -> bool:
    number = any(map(str.isdigit, word)) or following[0].isdigit() or following[0] in "$€£¥"
    return not number and word.lower() not in CLINGING and word not in ABBREVIATIONS
