from itertools import cycle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.schedule import ChunkSchedule, ChunkSizes, Growth, Window, WindowCutter

contexts = st.integers(0, 5)
ramps = st.lists(st.integers(1, 9), min_size=1, max_size=4).map(tuple)
fixed = st.builds(ChunkSchedule, ramp=st.just(()) | ramps, left_context=contexts, right_context=contexts)


@st.composite
def growing_schedules(draw: st.DrawFn) -> ChunkSchedule:
    ramp = draw(ramps)
    growth = Growth(draw(st.sampled_from([1.1, 1.5, 2.0, 8.0])), max(ramp) + draw(st.integers(0, 30)), draw(st.floats(1, 100)))
    return ChunkSchedule(ramp, draw(contexts), draw(contexts), growth)


growing = growing_schedules()
schedules = fixed | growing
segments = st.lists(st.lists(st.integers(0, 12), min_size=1, max_size=5), min_size=1, max_size=4)
"""Each segment as the lengths of the pieces that it arrives in."""


def kept(window: Window) -> np.ndarray:
    return window.values[:, window.left : window.values.shape[-1] - window.right]


class Clock:
    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def cut(
    schedule: ChunkSchedule, pieces_of_segments: list[list[int]], waits_s: tuple[float, ...] = (0.0,)
) -> tuple[list[np.ndarray], list[list[Window]]]:
    """The segments (their units are numbered) and the windows of each; so long one waits for each piece, over and over."""
    clock, waits = Clock(), cycle(waits_s)
    cutter, whole, windows, number = WindowCutter(schedule, clock), list[np.ndarray](), list[list[Window]](), 0
    for pieces in pieces_of_segments:
        total = sum(pieces)
        segment = np.arange(number, number + total, dtype=np.float32)[None]
        number += total
        ends = np.cumsum(pieces)
        windows.append([])
        for index, end in enumerate(ends):
            piece = segment[:, end - pieces[index] : end]
            clock.now_s += next(waits)
            windows[-1] += cutter.push(piece, segment_end=index == len(pieces) - 1)
        whole.append(segment)
    return whole, windows


def sizes(windows: list[Window]) -> list[int]:
    return [window.units for window in windows if window.units]


waits = st.lists(st.floats(0, 2), min_size=1, max_size=9).map(tuple)


@given(schedules, segments, waits)
def test_kept_parts_join_to_every_unit_exactly_once(schedule: ChunkSchedule, pieces: list[list[int]], waits_s: tuple[float, ...]):
    for segment, windows in zip(*cut(schedule, pieces, waits_s), strict=True):
        assert np.array_equal(np.concatenate([kept(window) for window in windows], axis=-1), segment)
        assert [window.final for window in windows] == [False] * (len(windows) - 1) + [True]


@given(schedules, segments, waits)
def test_contexts_are_the_neighbours_and_as_long_as_the_segment_allows(
    schedule: ChunkSchedule, pieces: list[list[int]], waits_s: tuple[float, ...]
):
    for segment, windows in zip(*cut(schedule, pieces, waits_s), strict=True):
        at = 0
        for window in windows:
            size = window.units
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


@given(fixed, segments, waits)
def test_sizes_follow_the_ramp_except_at_the_end_of_a_segment(
    schedule: ChunkSchedule, pieces: list[list[int]], waits_s: tuple[float, ...]
):
    chunk = 0
    for segment, windows in zip(*cut(schedule, pieces, waits_s), strict=True):
        for window in windows:
            wanted = schedule.size(chunk) or segment.shape[-1]
            assert window.units <= wanted if window.final else window.units == wanted
            chunk += window.units > 0


def test_a_segment_without_units_takes_no_size():
    assert [sizes(windows) for windows in cut(ChunkSchedule((1, 2)), [[0], [3], [4, 0]])[1]] == [[], [1, 2], [2, 2]]


@given(schedules, st.lists(st.integers(0, 12), max_size=8), waits)
def test_no_more_is_withheld_than_the_next_chunk_needs(schedule: ChunkSchedule, pieces: list[int], waits_s: tuple[float, ...]):
    largest = schedule.growth.most if schedule.growth else max(schedule.ramp, default=10**9)
    clock, pauses = Clock(), cycle(waits_s)
    cutter, came, gone = WindowCutter(schedule, clock), 0, 0
    for piece in pieces:
        clock.now_s += next(pauses)
        came += piece
        gone += sum(window.units for window in cutter.push(np.zeros((2, piece), np.float32), segment_end=False))
        assert came - gone < largest + schedule.right_context
    gone += sum(window.units for window in cutter.end())
    assert (came - gone, cutter.held_bytes, cutter.end()) == (0, 0, [])


@given(growing, segments, waits)
def test_a_growing_chunk_is_never_longer_than_what_is_still_to_be_played(
    schedule: ChunkSchedule, pieces: list[list[int]], waits_s: tuple[float, ...]
):
    assert schedule.growth
    unit_s, clock, pauses = schedule.growth.unit_ms / 1000, Clock(), cycle(waits_s)
    cutter, chunk, last, dry_s = WindowCutter(schedule, clock), 0, float("inf"), 0.0
    for segment in pieces:
        for index, piece in enumerate(segment):
            clock.now_s += next(pauses)
            for window in cutter.push(np.zeros((1, piece), np.float32), segment_end=index == len(segment) - 1):
                if chunk >= len(schedule.ramp) and not window.final:
                    ahead = (dry_s - clock.now_s) / unit_s
                    assert window.units == schedule.ramp[0] or window.units + schedule.right_context <= ahead + 1e-6
                    assert schedule.ramp[0] <= window.units <= schedule.growth.most
                    assert window.units < last * schedule.growth.factor + 1 or window.units == schedule.ramp[0]
                chunk += window.units > 0
                last = float("inf") if window.final else window.units  # the last of a segment may be shorter than wanted
                dry_s = max(dry_s, clock.now_s) + window.units * unit_s


TEN_MS = Growth(factor=2.0, most=100, unit_ms=10)


def grown(now_s: list[float], schedule: ChunkSchedule) -> list[int]:
    """The sizes of chunks that are cut at these times."""
    sizes, cut_sizes = ChunkSizes(schedule), list[int]()
    for moment_s in now_s:
        cut_sizes.append(sizes.next(moment_s) or 0)
        sizes.cut(cut_sizes[-1], moment_s)
    return cut_sizes


@pytest.mark.parametrize(
    ("now_s", "schedule", "expected"),
    [
        ([0, 0, 0, 0, 0, 0], ChunkSchedule((10,), growth=TEN_MS), [10, 10, 20, 40, 80, 100]),  # all at once
        ([0, 0, 0, 0], ChunkSchedule((10,), growth=Growth(1.25, 100, 10)), [10, 10, 13, 17]),  # a gentle factor
        ([0, 0, 0, 0], ChunkSchedule((10, 30), growth=TEN_MS), [10, 30, 40, 80]),  # from the ramp on
        ([0, 0, 0, 0], ChunkSchedule((10,), right_context=15, growth=TEN_MS), [10, 10, 10, 15]),  # which must come as well
        ([0, 0.05, 0.05, 0.05, 0.3], ChunkSchedule((10,), growth=TEN_MS), [10, 10, 15, 30, 35]),  # falling behind
        ([0, 0, 0, 0.39], ChunkSchedule((10,), growth=TEN_MS), [10, 10, 20, 10]),  # nearly dry
        ([0, 0, 5, 5, 5], ChunkSchedule((10,), growth=TEN_MS), [10, 10, 10, 10, 20]),  # dry: playback begins anew
    ],
)
def test_chunks_grow_with_what_lies_ahead(now_s: list[float], schedule: ChunkSchedule, expected: list[int]):
    assert grown(now_s, schedule) == expected


@given(growing, st.integers(200, 2_000))
def test_a_stream_that_comes_at_once_is_made_before_it_has_been_played(schedule: ChunkSchedule, units: int):
    """Contexts cost nothing here, the ramp is its first size, and making takes half of the time that playing takes."""
    schedule = ChunkSchedule(schedule.ramp[:1], growth=schedule.growth)
    made, played = 0.0, 0.0
    for size in sizes(cut(schedule, [[units]])[1][0]):
        made += size / 2
        assert not played or made <= played
        played = (played or made) + size


@pytest.mark.parametrize(("size", "withheld"), [(9, [[0, 1, 2, 3, 4, 5]]), (4, [[3, 4, 5]])])
def test_what_is_withheld_is_a_copy(size: int, withheld: list[list[int]]):
    """What comes may be a view of memory that its producer wants to use again."""
    cutter, lent = WindowCutter(ChunkSchedule((size,), left_context=1)), np.arange(6, dtype=np.float32)[None]
    cutter.push(lent, segment_end=False)
    lent[:] = -1
    assert [window.values.tolist() for window in cutter.end()] == [withheld]


def test_the_short_end_of_a_segment_does_not_hold_back_the_next():
    segments = [sizes(windows) for windows in cut(ChunkSchedule((10,), growth=TEN_MS), [[43], [50]])[1]]
    assert segments == [[10, 10, 20, 3], [43, 7]]


@pytest.mark.parametrize(
    "bad",
    [
        {"ramp": (0,)},
        {"ramp": (3, -1)},
        {"left_context": -1},
        {"growth": TEN_MS},
        {"ramp": (101,), "growth": TEN_MS},
    ],
)
def test_a_schedule_that_cannot_work_is_refused(bad: dict[str, object]):
    with pytest.raises(ValueError, match="expected"):
        ChunkSchedule(**bad)  # pyright: ignore[reportArgumentType] the point of the test


@pytest.mark.parametrize("bad", [{"factor": 1.0}, {"unit_ms": 0.0}])
def test_growth_that_cannot_work_is_refused(bad: dict[str, float]):
    with pytest.raises(ValueError, match="expected more than"):
        Growth(**{"factor": 2.0, "most": 9, "unit_ms": 1.0, **bad})  # pyright: ignore[reportArgumentType] the point of the test
