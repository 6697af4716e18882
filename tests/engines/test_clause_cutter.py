import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.clause_cutter import LONGEST_CHARS, LONGEST_LINK_TARGET, LONGEST_LINK_TEXT, ClauseCutter, Limits

PACE = (Limits(mark=12, word=24, most=48), Limits(mark=30, word=60, most=100), Limits(mark=90, word=150, most=200))
LONGEST_HOLD = LONGEST_CHARS + LONGEST_LINK_TEXT + LONGEST_LINK_TARGET + 10


def cut(text: str, *pieces: str) -> list[str]:
    cutter = ClauseCutter(PACE)
    spans = [span for piece in (pieces or (text,)) for span in cutter.push(piece)]
    return [span.text for span in spans + cutter.finish()]


@pytest.mark.parametrize(
    ("text", "clauses"),
    [
        ("Sure, I can help with that. What is it?", ["Sure, I can help with that.", " What is it?"]),
        ("The sky is blue today, because of the light.", ["The sky is blue today,", " because of the light."]),
        ("I would like to go there because it is nice.", ["I would like to go there", " because it is nice."]),
        ("It is the process by which plants live and breathe.", ["It is the process by which plants live", " and breathe."]),
        ("Pi is about 3.14 or so. It goes on.", ["Pi is about 3.14 or so.", " It goes on."]),
        ("Use a tool, e.g. a hammer. Then stop.", ["Use a tool, e.g. a hammer.", " Then stop."]),
        ("It costs exactly $1,000.50 now. Pay it.", ["It costs exactly $1,000.50 now.", " Pay it."]),
        ("It was on May 3, 2024, in the evening.", ["It was on May 3, 2024,", " in the evening."]),
        ("Please ask Dr. Smith about it. He knows.", ["Please ask Dr. Smith about it.", " He knows."]),
        ("See [the long, long docs, here](http://a.b/c d) now.", ["See [the long, long docs, here](http://a.b/c d) now."]),
        ("We met at 7:30 p.m. in town. Then we ate.", ["We met at 7:30 p.m. in town.", " Then we ate."]),
        ("Things to buy:\n1. Milk and eggs\n2. Bread", ["Things to buy:", "\n1. Milk and eggs", "\n2. Bread"]),
        ("A heading here\n\nthen a paragraph", ["A heading here", "\n\nthen a paragraph"]),
        ("a wrapped line\ngoes on here.", ["a wrapped line\ngoes on here."]),
        ("--- 😀 ***\n\nHello to you there.", ["--- 😀 ***\n\nHello to you there."]),
    ],
)
def test_where_clauses_end(text: str, clauses: list[str]):
    assert cut(text) == clauses


def test_without_marks_the_first_clause_ends_after_some_words_but_not_behind_an_article():
    first = cut("one two three four five six seven eight ninety the elephant walks slowly home")[0]
    assert first == "one two three four five six seven eight ninety"


def test_later_clauses_are_whole_sentences():
    sentence = " This sentence has a comma, and a conjunction, but it is spoken whole."
    assert cut("A first clause, then a second one, which has some more words in it." + sentence * 2)[-2:] == [sentence] * 2


def test_a_mark_ends_the_first_clause_as_soon_as_the_next_word_begins():
    cutter = ClauseCutter(PACE)
    assert cutter.push("Well, of course,") == []
    assert [span.text for span in cutter.push(" I")] == ["Well, of course,"]


MARKS = (" ", "\n", "\n\n", ",", ".", "?", "[", "](", ")", "—", "**", "`", "- ", "1. ", "😀", "|", '"')
WORDS = ("word", "and", "an", "Dr.", "e.g.", "U.S.", "p.m.", "because", "long" * 30, "3.", "5", "http://a.b/c", "$1,000.50")
PIECES = st.lists(st.sampled_from(MARKS + WORDS), max_size=50)


@given(PIECES | st.lists(st.text(max_size=20), max_size=20))
def test_any_chunking_gives_the_clauses_of_the_whole(pieces: list[str]):
    text = "".join(pieces)
    assert cut(text, *pieces) == cut(text) == cut(text, *text)
    assert "".join(cut(text)) == text


@pytest.mark.parametrize("endless", ["x", "x ", "[", "[x", "[x](", "1, ", "Dr. ", "é\u00a0", "the "])
def test_nothing_is_held_back_without_end(endless: str):
    cutter, held = ClauseCutter(PACE), 0
    for _ in range(3_000 // len(endless)):
        spans = cutter.push(endless)
        held += len(endless) - sum(len(span.text) for span in spans)
        assert held <= LONGEST_HOLD
