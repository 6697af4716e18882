import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.schedule import ChunkSchedule, Window, WindowCutter

schedules = st.builds(
    ChunkSchedule,
    ramp=st.lists(st.integers(1, 9), max_size=4).map(tuple),
    left_context=st.integers(0, 5),
    right_context=st.integers(0, 5),
)
segments = st.lists(st.lists(st.integers(0, 12), min_size=1, max_size=5), min_size=1, max_size=4)
"""Each segment as the lengths of the pieces that it arrives in."""


def kept(window: Window) -> np.ndarray:
    return window.values[:, window.left : window.values.shape[-1] - window.right]


def cut(schedule: ChunkSchedule, pieces_of_segments: list[list[int]]) -> tuple[list[np.ndarray], list[list[Window]]]:
    """The segments (their units are numbered) and the windows of each."""
    cutter, whole, windows, number = WindowCutter(schedule), list[np.ndarray](), list[list[Window]](), 0
    for pieces in pieces_of_segments:
        total = sum(pieces)
        segment = np.arange(number, number + total, dtype=np.float32)[None]
        number += total
        ends = np.cumsum(pieces)
        windows.append([])
        for index, end in enumerate(ends):
            piece = segment[:, end - pieces[index] : end]
            windows[-1] += cutter.push(piece, segment_end=index == len(pieces) - 1)
        whole.append(segment)
    return whole, windows


def sizes(windows: list[Window]) -> list[int]:
    return [size for window in windows if (size := kept(window).shape[-1])]


@given(schedules, segments)
def test_kept_parts_join_to_every_unit_exactly_once(schedule: ChunkSchedule, pieces: list[list[int]]):
    for segment, windows in zip(*cut(schedule, pieces), strict=True):
        assert np.array_equal(np.concatenate([kept(window) for window in windows], axis=-1), segment)
        assert [window.final for window in windows] == [False] * (len(windows) - 1) + [True]


@given(schedules, segments)
def test_contexts_are_the_neighbours_and_as_long_as_the_segment_allows(schedule: ChunkSchedule, pieces: list[list[int]]):
    for segment, windows in zip(*cut(schedule, pieces), strict=True):
        at = 0
        for window in windows:
            size = kept(window).shape[-1]
            assert window.left == min(schedule.left_context, at)
            assert window.right == min(schedule.right_context, segment.shape[-1] - at - size)
            assert np.array_equal(window.values, segment[:, at - window.left : at + size + window.right])
            at += size


@given(schedules, segments)
def test_arrival_does_not_change_the_windows(schedule: ChunkSchedule, pieces: list[list[int]]):
    in_pieces, whole = cut(schedule, pieces)[1], cut(schedule, [[sum(segment)] for segment in pieces])[1]
    assert [sizes(segment) for segment in in_pieces] == [sizes(segment) for segment in whole]


def test_full_waits_for_the_end():
    cutter = WindowCutter(ChunkSchedule.full())
    assert cutter.push(np.zeros((1, 100), np.float32), segment_end=False) == []
    assert [window.values.shape for window in cutter.push(np.zeros((1, 5), np.float32), segment_end=True)] == [(1, 105)]


def test_chunked_goes_on_with_its_size():
    schedule = ChunkSchedule.chunked(initial=2, size=5)
    assert [schedule.size(chunk) for chunk in range(3)] == [2, 5, 5]


@pytest.mark.parametrize("bad", [{"ramp": (0,)}, {"ramp": (3, -1)}, {"left_context": -1}])
def test_a_schedule_that_cannot_work_is_refused(bad: dict[str, object]):
    with pytest.raises(ValueError, match="expected"):
        ChunkSchedule(**bad)  # pyright: ignore[reportArgumentType] the point of the test
