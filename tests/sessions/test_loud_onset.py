"""Sounds that may be the beginning of a voice, told by their loudness."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessions.loud_onset import DISTRUST_WINDOWS, LONGEST_WINDOWS, LOUD_WINDOWS, ROOM_WINDOWS, LoudOnset

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


def test_a_sound_that_goes_on_is_told_for_a_quarter_of_a_second() -> None:
    assert sum(told(listening(), [SPEECH] * 40)) == LONGEST_WINDOWS - LOUD_WINDOWS + 1


def test_after_a_sound_that_was_no_voice_loudness_tells_nothing_for_a_while() -> None:
    onset = listening()
    assert told(onset, [SPEECH] * 2)[-1]
    onset.was_no_voice()
    assert not any(told(onset, ([SPEECH] * 4 + [QUIET] * 16) * (DISTRUST_WINDOWS // 20)))
    assert any(told(onset, [SPEECH] * 4))


def test_a_suspicion_of_something_else_costs_no_trust() -> None:
    onset = listening()
    onset.was_no_voice()
    assert any(told(onset, [SPEECH] * 4))
    onset.was_voice()
    told(onset, [QUIET] * ROOM_WINDOWS)
    onset.was_no_voice()
    assert any(told(onset, [SPEECH] * 4))


@given(st.lists(st.floats(-100, 0), max_size=200))
def test_zero_switches_it_off(levels: list[float]) -> None:
    assert not any(told(LoudOnset(0.0), levels))
