"""Words as a recogniser writes them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessions.voice.settings import BACKCHANNELS
from sessions.voice.spoken_words import is_backchannel, repeats, words_of

PHRASES = frozenset(BACKCHANNELS)


def test_marks_and_capitals_are_no_part_of_a_word() -> None:
    assert words_of("M.H.M., that’s Right! — 3 times…") == ("mhm", "thats", "right", "3", "times")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Стоп, подожди!", ("стоп", "подожди")),
        ("Σταμάτα", ("σταμάτα",)),
        ("Ça va, Straße_3?", ("ça", "va", "strasse3")),
        ("رجاء توقف", ("رجاء", "توقف")),
        ("停一下。OK吗？", ("停", "一", "下", "ok", "吗")),
        ("หยุด", ("ห", "ย", "ด")),
        ("잠깐만 기다려", ("잠깐만", "기다려")),
    ],
)
def test_words_of_any_script_are_words(text: str, words: tuple[str, ...]) -> None:
    assert words_of(text) == words


@pytest.mark.parametrize("hum", ["Mhm", "Mm-hmm", "MMM", "Hmm.", "uh-huh", "Uh.", "Um", "M-H-M", "hm hm"])
def test_hums_are_back_channels_in_every_spelling(hum: str) -> None:
    assert is_backchannel(words_of(hum), PHRASES)


@pytest.mark.parametrize("text", ["ham", "home", "him", "see", "I", "I see you", "no", "yeah no", "human"])
def test_words_are_not(text: str) -> None:
    assert not is_backchannel(words_of(text), PHRASES)


def test_phrases_of_several_words_count_as_a_whole() -> None:
    assert is_backchannel(words_of("Oh, I see. Yeah."), PHRASES)


def test_nothing_is_tolerated_without_phrases() -> None:
    assert not is_backchannel(words_of("Mhm"), frozenset())


def test_an_echo_may_lose_three_words_in_ten() -> None:
    said = words_of("The city of Rome was founded a very long time ago.")
    assert repeats(words_of("of room was founded a very"), said)
    assert not repeats(words_of("When was Rome a small town?"), said)
    assert not repeats(words_of("Rome"), said)
    assert not repeats(words_of("What is the capital of France?"), words_of("The capital of France is Paris."))


@pytest.mark.parametrize("text", ["You can stop.", "I want to stop.", "Wait, stop."])
def test_words_that_were_said_far_apart_were_not_repeated(text: str) -> None:
    said = words_of("You can visit it in the spring or wait if you want to know more about it so let me know when I stop")
    assert not repeats(words_of(text), said)


@given(st.lists(st.sampled_from("abcdefgh"), min_size=2, max_size=12), st.data())
def test_any_stretch_of_what_was_said_repeats_it(said: list[str], data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(said) - 2))
    end = data.draw(st.integers(start + 2, len(said)))
    assert repeats(said[start:end], said)


@given(st.text(max_size=60))
def test_any_text_is_read(text: str) -> None:
    words = words_of(text)
    assert all(word.isalnum() for word in words)
    is_backchannel(words, PHRASES)
    repeats(words, words)
