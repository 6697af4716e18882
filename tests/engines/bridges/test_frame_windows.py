from itertools import pairwise

import numpy as np
import pytest

from engines.bridges.frame_windows import FrameWindows
from engines.parameters import Speech
from engines.payloads import Array, Payload, Scalar

FRAME_MS = 256 / 22.05
REAL_TIME_FACTOR = 0.2


def clause(frames: int, number: int = 0, final: bool = True) -> Payload:
    attributes: dict[str, Scalar] = {"clause": number, "written_end": 10 * number, "clause_final": final}
    return Payload(arrays={"frames": Array.of(np.zeros((192, frames), np.float32))}, attributes=attributes)


def decoded(window: Payload) -> int:
    return window.arrays["frames"].shape[1]


def emitted(window: Payload) -> int:
    return decoded(window) - int(window.attributes["left"]) - int(window.attributes["right"])


def test_a_sentence_of_4_s_is_decoded_at_most_1_25_times():
    windows = FrameWindows(Speech(voice="joe")).feed(clause(344))
    assert sum(map(emitted, windows)) == 344
    assert sum(map(decoded, windows)) / 344 <= 1.25


@pytest.mark.parametrize("frames", [1, 24, 30, 344, 2_000])
def test_the_first_chunk_is_at_most_280_ms(frames: int):
    first = FrameWindows(Speech(voice="joe")).feed(clause(frames))[0]
    assert 0 < emitted(first) * FRAME_MS <= 280


@pytest.mark.parametrize("frames", [344, 2_000])
def test_playback_never_starves_inside_a_clause(frames: int):
    windows = FrameWindows(Speech(voice="joe")).feed(clause(frames))
    clock_ms, played_until_ms = 0.0, None
    for window in windows:
        clock_ms += decoded(window) * FRAME_MS * REAL_TIME_FACTOR
        if played_until_ms is not None:
            assert clock_ms <= played_until_ms
        played_until_ms = (clock_ms if played_until_ms is None else played_until_ms) + emitted(window) * FRAME_MS


def test_the_ramp_goes_on_in_the_next_clause():
    bridge = FrameWindows(Speech(voice="joe"))
    bridge.feed(clause(40))
    assert emitted(bridge.feed(clause(400, number=1))[0]) == 144


def test_each_window_tells_its_clause_and_only_the_last_ends_it():
    windows = FrameWindows(Speech(voice="joe")).feed(clause(344, number=3))
    assert {window.attributes["written_end"] for window in windows} == {30}
    assert [window.attributes["clause_final"] for window in windows] == [False] * (len(windows) - 1) + [True]
    assert all(left.attributes["right"] == right.attributes["left"] == 12 for left, right in pairwise(windows))


def test_a_clause_without_sound_still_ends():
    (window,) = FrameWindows(Speech(voice="joe")).feed(clause(0))
    assert window.attributes["clause_final"] is True


def test_an_empty_final_chunk_gives_nothing():
    bridge = FrameWindows(Speech(voice="joe"))
    assert bridge.feed(Payload()) == []
    assert bridge.finish() == []
