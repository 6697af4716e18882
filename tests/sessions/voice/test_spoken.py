"""Where a spoken answer was cut."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessions.voice.spoken import Spoken

TEXT = "The first part, and then the second."


def spoken() -> Spoken:
    timeline = Spoken(15.0)
    timeline.add(0, 15, 500, complete=False)
    timeline.add(0, 15, 1_000, complete=True)
    timeline.add(1, len(TEXT), 2_100, complete=True)
    return timeline


@pytest.mark.parametrize(
    ("until_ms", "heard"),
    [
        (0, ""),
        (-1, ""),
        (299, ""),
        (300, "The"),
        (1_400, "The first"),
        (1_500, "The first part,"),
        (1_999, "The first part, and"),
        (3_599, "The first part, and then the"),
        (3_600, TEXT),
        (1e9, TEXT),
    ],
)
def test_cut_at_word_ends(until_ms: float, heard: str) -> None:
    assert spoken().heard(TEXT, until_ms) == heard


def test_nothing_spoken_is_nothing_heard() -> None:
    assert Spoken(15.0).heard("Never said.", 1_000) == ""


def test_text_beyond_the_last_clause_was_not_heard() -> None:
    timeline = Spoken(15.0)
    timeline.add(0, 4, 300, complete=True)
    assert timeline.heard("One. Two.", 300) == "One."


def test_an_incomplete_clause_is_cut_by_the_pace_of_speech() -> None:
    timeline = Spoken(10.0)
    timeline.add(0, 40, 1_000, complete=False)
    assert timeline.heard("one two three four five six seven eight ", 1_000) == "one two"


def test_a_clause_is_over_when_the_next_one_begins() -> None:
    timeline = Spoken(10.0)
    timeline.add(0, 20, 3_000, complete=False)
    timeline.add(1, 30, 1_000, complete=False)
    assert timeline.heard("one two three four. five six seven", 3_500) == "one two three four. five"


def test_the_mark_of_a_clauses_end_may_come_without_sound() -> None:
    timeline = Spoken(1.0)
    timeline.add(0, 19, 3_000, complete=False)
    timeline.add(0, 19, 0, complete=True)
    assert timeline.heard("one two three four. five", 3_000) == "one two three four."


def test_trailing_space_belongs_to_the_last_word() -> None:
    timeline = Spoken(15.0)
    timeline.add(0, 4, 300, complete=True)
    assert timeline.heard("Yes. ", 300) == "Yes. "


@given(
    st.lists(st.tuples(st.integers(1, 30), st.integers(1, 3_000), st.booleans()), max_size=8), st.floats(0, 1), st.floats(0, 1)
)
def test_more_playback_is_never_less_text(clauses: list[tuple[int, int, bool]], one: float, other: float) -> None:
    timeline, end = Spoken(15.0), 0
    for index, (length, duration_ms, complete) in enumerate(clauses):
        end += length
        timeline.add(index, end, duration_ms, complete)
    text = ("ab cd " * 60)[:end]
    early, late = sorted((one * timeline.duration_ms, other * timeline.duration_ms))
    assert timeline.heard(text, late).startswith(timeline.heard(text, early))


def test_words_between_two_moments() -> None:
    assert spoken().between(TEXT, 0, 1_500) == "The first part,"
    assert spoken().between(TEXT, 1_000, 2_000) == "part, and"
    assert spoken().between(TEXT, 3_700, 9_000) == ""
    assert spoken().between(TEXT, -900, -100) == ""
