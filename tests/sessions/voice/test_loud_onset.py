"""Sounds that may be the beginning of a voice, told by their loudness."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessions.voice.loud_onset import DISTRUST_WINDOWS, LONGEST_WINDOWS, LOUD_WINDOWS, OVER_WINDOWS, ROOM_WINDOWS, LoudOnset

QUIET, SPEECH = -65.0, -30.0


def told(onset: LoudOnset, levels: list[float]) -> list[bool]:
    return [onset.window(level) for level in levels]


def listening() -> LoudOnset:
    onset = LoudOnset(15.0)
    told(onset, [QUIET] * ROOM_WINDOWS)
    return onset


def test_a_sound_of_two_windows_is_told_in_the_second() -> None:
    assert told(listening(), [QUIET, SPEECH, SPEECH, SPEECH]) == [False, False, True, True]


def test_a_click_is_not_told() -> None:
    assert not any(told(listening(), [SPEECH, QUIET, QUIET] * 20))


@pytest.mark.parametrize("level", [QUIET + 14, -46.0])
def test_what_is_hardly_louder_than_the_room_or_too_faint_to_be_understood_is_not_told(level: float) -> None:
    assert not any(told(listening(), [level] * 10))


def test_a_loud_room_is_no_sound_that_begins() -> None:
    onset = LoudOnset(15.0)
    told(onset, [-35.0] * ROOM_WINDOWS)
    assert not any(told(onset, [-25.0] * 10))
    assert any(told(onset, [-15.0] * 10))


def test_a_sound_that_goes_on_is_told_for_a_while() -> None:
    assert sum(told(listening(), [SPEECH] * 40)) == LONGEST_WINDOWS


@pytest.mark.parametrize("rhythm", [[SPEECH, SPEECH, QUIET], [SPEECH, SPEECH, QUIET, QUIET], [SPEECH, SPEECH, SPEECH, QUIET]])
def test_claps_and_keys_are_one_sound(rhythm: list[float]) -> None:
    """Else it would begin again and again, and the agent would be held for as long."""
    assert not any(told(listening(), rhythm * 10)[LONGEST_WINDOWS + LOUD_WINDOWS :])


def test_another_sound_is_told_of_again() -> None:
    onset = listening()
    told(onset, [SPEECH] * 20 + [QUIET] * OVER_WINDOWS)
    assert sum(told(onset, [SPEECH] * 10)) == LONGEST_WINDOWS


def test_after_a_sound_that_was_no_voice_loudness_tells_nothing_for_a_while() -> None:
    onset = listening()
    assert told(onset, [SPEECH] * 2)[-1]
    onset.distrust()
    assert not any(told(onset, ([SPEECH] * 4 + [QUIET] * 16) * (DISTRUST_WINDOWS // 20)))
    assert any(told(onset, [SPEECH] * 4))


@given(st.lists(st.floats(-100, 0), max_size=200))
def test_zero_switches_it_off(levels: list[float]) -> None:
    assert not any(told(LoudOnset(0.0), levels))
