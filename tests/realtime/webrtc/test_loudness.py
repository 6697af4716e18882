"""How loud what was played was."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from realtime.webrtc.loudness import Loudness
from realtime.webrtc.playout import LEVEL_SLOTS, Playout
from sessions.voice.playout import SILENT_DB


def square(amplitude: int, slots: int) -> bytes:
    """A square wave: its power is that of its amplitude."""
    return np.tile(np.array([amplitude, -amplitude], "<i2"), 240 * slots).tobytes()


@pytest.mark.parametrize(("amplitude", "decibels"), [(16_384, -6.02), (327, -40.02), (0, SILENT_DB)])
def test_full_scale_is_zero_decibels(amplitude: int, decibels: float) -> None:
    assert Loudness().of(square(amplitude, 3)) == pytest.approx([decibels] * 3, abs=0.01)


@given(st.lists(st.integers(0, 700), max_size=20))
def test_the_pieces_in_which_it_comes_do_not_matter(lengths: list[int]) -> None:
    pcm = square(8_000, 2) + square(800, 8)
    loudness, levels, place = Loudness(), list[float](), 0
    for length in [*lengths, len(pcm)]:
        levels += loudness.of(pcm[place : place + 2 * length])
        place += 2 * length
    assert levels == Loudness().of(pcm)


async def test_a_playout_knows_how_loud_its_last_slots_were() -> None:
    playout = Playout(lambda name: None, lambda name: None, lambda: None)
    playout.begin("a", "item_a")
    playout.expect("a", [-20.0, -30.0])
    for packet in (b"1", b"2", b"after the last level: the codec's own tail"):
        await playout.put("a", packet)
    playout.next()
    playout.hold()
    playout.next()
    playout.resume()
    for _ in range(3):
        playout.next()
    assert playout.levels() == (-20.0, SILENT_DB, -30.0, SILENT_DB, SILENT_DB)
    for _ in range(LEVEL_SLOTS):
        playout.next()
    assert len(playout.levels()) == LEVEL_SLOTS
    assert math.isclose(max(playout.levels()), SILENT_DB)
