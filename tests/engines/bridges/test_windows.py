"""Edges that carry an array over time; and the one of the voice pipeline, from the talker to its decoder."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.bridges.held import MOST_HELD_BYTES
from engines.bridges.windows import WindowBridge, Windows
from engines.parameters import Speech
from engines.payloads import Array, Payload, Scalar
from engines.pipeline import Bridge, BrokenStream
from engines.pipelines.voice import VOICE
from engines.schedule import ChunkSchedule, Growth

FRAME_MS = 256 / 22.05
REAL_TIME_FACTOR = 0.2


def clause(frames: int, number: int = 0, final: bool = True) -> Payload:
    attributes: dict[str, Scalar] = {"clause": number, "written_end": 10 * number, "clause_final": final}
    return Payload(arrays={"frames": Array.of(np.zeros((192, frames), np.float32))}, attributes=attributes)


def frame_windows() -> Bridge:
    return VOICE.edge("talker", "code2wav").bridge(Speech(voice="joe"))


def decoded(window: Payload) -> int:
    return window.arrays["frames"].shape[1]


def emitted(window: Payload) -> int:
    return decoded(window) - int(window.attributes["left"]) - int(window.attributes["right"])


def test_a_sentence_of_4_s_is_decoded_at_most_1_25_times():
    windows = frame_windows().feed(clause(344))
    assert sum(map(emitted, windows)) == 344
    assert sum(map(decoded, windows)) / 344 <= 1.25


@pytest.mark.parametrize("frames", [1, 24, 30, 344, 2_000])
def test_the_first_chunk_is_at_most_280_ms(frames: int):
    first = frame_windows().feed(clause(frames))[0]
    assert 0 < emitted(first) * FRAME_MS <= 280


@pytest.mark.parametrize("frames", [344, 2_000])
def test_playback_never_starves_inside_a_clause(frames: int):
    windows = frame_windows().feed(clause(frames))
    clock_ms, played_until_ms = 0.0, None
    for window in windows:
        clock_ms += decoded(window) * FRAME_MS * REAL_TIME_FACTOR
        if played_until_ms is not None:
            assert clock_ms <= played_until_ms
        played_until_ms = (clock_ms if played_until_ms is None else played_until_ms) + emitted(window) * FRAME_MS


def test_the_ramp_goes_on_in_the_next_clause():
    bridge = frame_windows()
    bridge.feed(clause(40))
    assert emitted(bridge.feed(clause(400, number=1))[0]) == 144


def test_each_window_tells_its_clause_and_only_the_last_ends_it():
    windows = frame_windows().feed(clause(344, number=3))
    assert {window.attributes["written_end"] for window in windows} == {30}
    assert [window.attributes["clause_final"] for window in windows] == [False] * (len(windows) - 1) + [True]
    assert all(left.attributes["right"] == right.attributes["left"] == 12 for left, right in pairwise(windows))


def test_a_clause_without_sound_still_ends():
    (window,) = frame_windows().feed(clause(0))
    assert window.attributes["clause_final"] is True


def test_a_talker_that_ends_in_mid_clause_is_at_fault():
    bridge = frame_windows()
    bridge.feed(clause(40))
    bridge.feed(clause(40, number=1, final=False))
    with pytest.raises(
        BrokenStream, match="frames: expected clause_final true in the stream's last payload, it ended in mid-seg"
    ):
        bridge.finish()


PAIRS = ChunkSchedule(ramp=(2,), left_context=1, right_context=1)


def ids(*values: int, **attributes: Scalar) -> Payload:
    return Payload(arrays={"ids": Array.of(np.array(values, np.int64))}, attributes=attributes)


def tokens(schedule: ChunkSchedule = PAIRS, segment_end: str = "") -> WindowBridge:
    return Windows("ids", schedule, segment_end)(Speech(voice="joe"))


def seen(payloads: list[Payload]) -> list[tuple[list[int], int, int]]:
    return [
        (payload.arrays["ids"].numpy().tolist(), int(payload.attributes["left"]), int(payload.attributes["right"]))
        for payload in payloads
    ]


def test_right_context_is_withheld_until_it_is_there_or_the_stream_has_ended():
    bridge = tokens()
    assert bridge.feed(ids(1, 2)) == []
    assert seen(bridge.feed(ids(3))) == [([1, 2, 3], 0, 1)]
    assert bridge.feed(ids(4)) == []
    assert seen(bridge.finish()) == [([2, 3, 4], 1, 0)]
    assert bridge.finish() == []


@given(st.lists(st.integers(0, 5), max_size=8))
def test_chunks_that_come_together_lose_nothing(pieces: list[int]):
    """However many come in one step, or before their consumer is ready: as if it were one."""
    numbers = iter(range(100))
    payloads = [ids(*(next(numbers) for _ in range(piece))) for piece in pieces]
    apart, together = tokens(), tokens()
    windows = [window for payload in payloads for window in apart.feed(payload)] + apart.finish()
    assert seen(windows) == seen(together.feed(ids(*range(sum(pieces)))) + together.finish())
    assert [n for held, left, right in seen(windows) for n in held[left : len(held) - right]] == list(range(sum(pieces)))


def test_an_empty_chunk_changes_nothing_and_ends_its_segment_when_it_says_so():
    bridge = tokens(segment_end="done")
    assert bridge.feed(Payload()) + bridge.feed(ids()) + bridge.feed(Payload(attributes={"done": False})) == []
    bridge.feed(ids(1, 2))
    (last,) = bridge.feed(Payload(attributes={"done": True}))
    assert (seen([last]), last.attributes["done"]) == ([([1, 2], 0, 0)], True)
    assert bridge.feed(Payload(attributes={"done": True})) == []
    assert bridge.finish() == []


def test_a_stream_without_anything_gives_nothing():
    assert tokens().finish() == tokens(segment_end="done").finish() == []
    bridge = tokens()
    assert bridge.feed(ids()) + bridge.finish() == []


def test_attributes_of_what_was_withheld_come_with_it_and_end_with_their_segment():
    bridge = tokens(segment_end="done")
    bridge.feed(ids(1, written="one", speaker="a"))
    first, last = bridge.feed(ids(2, 3, written="two", done=True))
    assert first.attributes == {"written": "two", "speaker": "a", "left": 0, "right": 1, "done": False}
    assert last.attributes == {"written": "two", "speaker": "a", "left": 1, "right": 0, "done": True}
    (alone,) = bridge.feed(ids(4, done=True))
    assert alone.attributes == {"left": 0, "right": 0, "done": True}


def test_chunks_grow_by_the_clock_of_the_record():
    now_s = [0.0]
    schedule = ChunkSchedule((2,), growth=Growth(2.0, 8, unit_ms=100))
    bridge = Windows("ids", schedule, clock=lambda: now_s[0])(Speech(voice="joe"))
    assert [len(held) for held, _, _ in seen(bridge.feed(ids(*range(8))))] == [2, 2, 4]
    now_s[0] = 0.5
    assert [len(held) for held, _, _ in seen(bridge.feed(ids(*range(6))))] == [3]


@pytest.mark.parametrize(
    ("first", "second", "told"),
    [
        (Array.of(np.zeros((3, 4))), Array.of(np.zeros((2, 4))), r"ids: expected float64 \[3, time\], got float64 \[2, 4\]"),
        (
            Array.of(np.zeros((3, 4))),
            Array.of(np.zeros((3, 4), np.int8)),
            r"ids: expected float64 \[3, time\], got int8 \[3, 4\]",
        ),
        (Array.of(np.zeros(4)), Array("float64", (), memoryview(bytes(8))), r"ids: expected float64 \[time\], got float64 \[\]"),
    ],
)
def test_what_does_not_continue_the_stream_is_named(first: Array, second: Array, told: str):
    bridge = tokens()
    bridge.feed(Payload(arrays={"ids": first}))
    with pytest.raises(BrokenStream, match=told):
        bridge.feed(Payload(arrays={"ids": second}))


def test_a_segment_that_is_too_long_to_hold_is_refused():
    bridge, half = tokens(ChunkSchedule.full()), Payload(arrays={"ids": Array.of(np.zeros(MOST_HELD_BYTES // 2, np.uint8))})
    bridge.feed(half)
    bridge.feed(half)
    with pytest.raises(BrokenStream, match=f"ids: expected at most {MOST_HELD_BYTES} bytes held at once"):
        bridge.feed(half)
