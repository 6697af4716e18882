import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.models.quietest import pieces

RATE = 16_000


@given(seconds=st.floats(0, 130), noise=st.integers(0, 2**32 - 1))
def test_joined_pieces_are_the_whole(seconds: float, noise: int):
    samples = np.random.default_rng(noise).standard_normal(int(seconds * RATE), np.float32)
    cut = pieces(samples)
    np.testing.assert_array_equal(np.concatenate(cut), samples)
    assert all(len(piece) <= 28 * RATE for piece in cut)
    assert all(len(piece) >= 14 * RATE for piece in cut[:-1])


@pytest.mark.parametrize("pause_at_s", [15.0, 20.0, 27.0])
def test_cuts_in_the_pause(pause_at_s: float):
    samples = np.random.default_rng(1).standard_normal(40 * RATE, np.float32)
    pause = slice(int(pause_at_s * RATE), int((pause_at_s + 0.4) * RATE))
    samples[pause] *= 0.01
    first, _ = pieces(samples)
    assert pause.start + 0.05 * RATE < len(first) < pause.stop - 0.05 * RATE
