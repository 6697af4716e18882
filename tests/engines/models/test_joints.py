import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.models.joints import ClauseJoints

RATE = 1_000  # one sample is one millisecond


def silence(milliseconds: int) -> np.ndarray:
    return np.zeros(milliseconds, np.float32)


def voice(milliseconds: int) -> np.ndarray:
    return np.full(milliseconds, 0.5, np.float32)


def test_the_front_is_trimmed_to_the_onset():
    joined = ClauseJoints(RATE).join(np.concatenate([silence(90), voice(50)]), pause_ms=None)
    assert len(joined) == 20 + 50


def test_silence_before_the_onset_may_span_pieces():
    joints = ClauseJoints(RATE)
    assert len(joints.join(silence(300), pause_ms=None)) == 0
    assert len(joints.join(np.concatenate([silence(5), voice(50)]), pause_ms=None)) == 55


@pytest.mark.parametrize("own_silence_ms", [0, 30, 80, 500])
def test_the_end_has_the_wanted_pause(own_silence_ms: int):
    joined = ClauseJoints(RATE).join(np.concatenate([voice(100), silence(own_silence_ms)]), pause_ms=80)
    assert len(joined) == 180


def test_silence_that_was_already_played_counts():
    joints = ClauseJoints(RATE)
    joints.join(np.concatenate([voice(100), silence(60)]), pause_ms=None)
    assert len(joints.join(silence(50), pause_ms=80)) == 20


def test_the_next_clause_is_trimmed_as_well():
    joints = ClauseJoints(RATE)
    joints.join(voice(100), pause_ms=80)
    assert len(joints.join(np.concatenate([silence(70), voice(10)]), pause_ms=None)) == 30


def test_a_clause_without_sound_adds_nothing():
    assert len(ClauseJoints(RATE).join(silence(0), pause_ms=220)) == 0


@given(st.lists(st.integers(1, 60), min_size=1, max_size=8))
def test_pieces_of_any_size_keep_every_voiced_sample(sizes: list[int]):
    joints, clause = ClauseJoints(RATE), np.concatenate([voice(sum(sizes)), silence(30)])
    pieces = np.split(clause, np.cumsum(sizes))
    joined = [joints.join(piece, 50 if index == len(pieces) - 1 else None) for index, piece in enumerate(pieces)]
    assert np.array_equal(np.concatenate(joined), np.concatenate([voice(sum(sizes)), silence(50)]))
