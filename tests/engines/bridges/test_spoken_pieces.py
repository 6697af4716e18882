from hypothesis import given
from hypothesis import strategies as st

from engines.bridges.spoken_pieces import LONGEST_NAME, spoken_pieces


def test_short_text_stays_whole():
    assert spoken_pieces("It costs five dollars,", 40) == ["It costs five dollars,"]
    assert spoken_pieces("", 40) == [""]


def test_it_is_cut_between_words():
    assert spoken_pieces("seven seven seven seven", 12) == ["seven seven", "seven seven"]


def test_a_long_word_is_cut_inside():
    assert spoken_pieces("a" * 25, 10) == ["a" * 10, "a" * 10, "a" * 5]


def test_letters_that_are_read_by_their_names_count_for_more():
    assert spoken_pieces("你" * 9, 4 * LONGEST_NAME) == ["你" * 4, "你" * 4, "你"]


@given(st.text(max_size=60), st.integers(LONGEST_NAME, 60))
def test_nothing_but_space_is_lost_and_no_piece_is_long(text: str, most: int):
    pieces = spoken_pieces(text, most)
    assert "".join("".join(pieces).split()) == "".join(text.split())
    assert max(map(len, pieces)) <= most
