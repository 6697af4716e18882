import shutil

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engines import phonemes as module
from engines.phonemes import EspeakMissing, phonemes

pytestmark = pytest.mark.skipif(shutil.which("espeak-ng") is None, reason="the Debian package espeak-ng is not installed")


def test_punctuation_is_kept_where_it_was():
    assert phonemes("Well, yes. Really?") == "wˈɛl, jˈɛs. ɹˈiəli?"


def test_tie_marks_diphthongs():
    assert phonemes("my day", tie="^") == "maɪ dˈeɪ".replace("aɪ", "a^ɪ").replace("eɪ", "e^ɪ")


@pytest.mark.parametrize(
    "text",
    [
        "-v de hello",
        "--help",
        "hel\x00lo",
        "<speak>hello</speak>",
        "[[h@l]] hello",
        "hello " * 500,
        "$(id) `id` ; id",
        "\ud800 hello",
    ],
)
def test_hostile_text_is_only_read(text: str):
    assert phonemes(text)


@pytest.mark.parametrize("text", ["", " ", "...", "😀", "\x00", "!?"])
def test_nothing_to_speak_gives_nothing(text: str):
    assert phonemes(text) == ""


def test_a_missing_program_names_the_package(monkeypatch: pytest.MonkeyPatch):
    def nowhere(program: str) -> None:
        return None

    monkeypatch.setattr(module.shutil, "which", nowhere)
    with pytest.raises(EspeakMissing, match="apt install espeak-ng"):
        phonemes("a text that no other test has cached")


@settings(max_examples=40, deadline=None)
@given(st.text(max_size=80))
def test_any_text_is_transcribed_without_an_error(text: str):
    assert "\n" not in phonemes(text)
