import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from realtime.media.resampler import Resampler

RATES = [(8_000, 24_000), (24_000, 8_000), (16_000, 24_000), (24_000, 16_000), (24_000, 48_000), (48_000, 24_000)]
ODD_RATES = [(44_100, 24_000), (24_000, 44_100), (22_050, 8_000), (8_000, 44_100)]


def tone(frequency_hz: float, rate_hz: int, length: int) -> bytes:
    return (9_000 * np.sin(2 * np.pi * frequency_hz * np.arange(length) / rate_hz)).astype("<i2").tobytes()


def noise(length: int) -> bytes:
    return np.random.default_rng(5).integers(-32_768, 32_767, length, endpoint=True).astype("<i2").tobytes()


def samples(pcm: bytes) -> npt.NDArray[np.float64]:
    return np.frombuffer(pcm, "<i2").astype(np.float64)


def whole(pcm: bytes, source_hz: int, target_hz: int) -> bytes:
    resampler = Resampler(source_hz, target_hz)
    return resampler.resample(pcm) + resampler.finish()


@pytest.mark.parametrize(("source_hz", "target_hz"), RATES + ODD_RATES)
@pytest.mark.parametrize("frequency_hz", [300, 1_000, 3_400])
def test_a_tone_keeps_its_pitch_its_level_and_its_length(source_hz: int, target_hz: int, frequency_hz: float):
    out = samples(whole(tone(frequency_hz, source_hz, source_hz), source_hz, target_hz))
    assert len(out) == target_hz
    inner = slice(target_hz // 20, -target_hz // 20)
    expected = samples(tone(frequency_hz, target_hz, target_hz))
    assert np.abs(out - expected)[inner].max() <= 25  # of 9,000: −51 dB, in place and level


@pytest.mark.parametrize(("source_hz", "target_hz"), [(24_000, 8_000), (48_000, 16_000), (44_100, 8_000)])
def test_what_the_lower_rate_cannot_carry_is_gone(source_hz: int, target_hz: int):
    out = samples(whole(tone(0.53 * target_hz, source_hz, source_hz), source_hz, target_hz))
    assert np.abs(out[target_hz // 20 : -target_hz // 20]).max() <= 9


@given(
    rates=st.sampled_from(RATES + ODD_RATES),
    sizes=st.lists(st.integers(0, 2_000), min_size=1, max_size=8),
    length=st.integers(0, 6_000),
)
def test_however_it_is_split_the_sound_is_the_same_to_the_bit(rates: tuple[int, int], sizes: list[int], length: int):
    pcm, resampler = noise(length), Resampler(*rates)
    parts: list[bytes] = []
    start = 0
    for size in [*sizes, length]:
        parts.append(resampler.resample(pcm[2 * start : 2 * (start + size)]))
        start += size
    assert b"".join([*parts, resampler.finish()]) == whole(pcm, *rates)


@given(rates=st.sampled_from(RATES + ODD_RATES), length=st.integers(0, 5_000))
def test_the_length_is_kept(rates: tuple[int, int], length: int):
    source_hz, target_hz = rates
    made = len(whole(noise(length), source_hz, target_hz)) // 2
    assert abs(made - length * target_hz / source_hz) <= 0.5


@given(rates=st.sampled_from(RATES + ODD_RATES), length=st.integers(0, 5_000))
def test_no_more_than_the_stated_delay_is_held_back(rates: tuple[int, int], length: int):
    source_hz, target_hz = rates
    resampler = Resampler(source_hz, target_hz)
    made_ms = len(resampler.resample(noise(length))) / 2 * 1000 / target_hz
    assert length * 1000 / source_hz - made_ms <= resampler.delay_ms


@pytest.mark.parametrize(("source_hz", "target_hz"), [*RATES, (44_100, 24_000), (24_000, 44_100)])
def test_the_delay_is_small(source_hz: int, target_hz: int):
    assert Resampler(source_hz, target_hz).delay_ms <= 5


@pytest.mark.parametrize(("source_hz", "target_hz"), RATES + ODD_RATES)
def test_a_constant_stays_constant_across_all_borders(source_hz: int, target_hz: int):
    level = np.full(source_hz // 2, 20_000, "<i2").tobytes()
    resampler = Resampler(source_hz, target_hz)
    pieces = [resampler.resample(level[start : start + 882]) for start in range(0, len(level), 882)]
    out = samples(b"".join(pieces))
    assert set(out[target_hz // 20 : -target_hz // 20]) == {20_000.0}


def test_full_scale_is_clipped_and_does_not_turn_over():
    square = np.tile(np.repeat(np.array([32_767, -32_768], "<i2"), 40), 50).tobytes()
    out = samples(whole(square, 8_000, 24_000))
    assert out.max() == 32_767
    assert out.min() == -32_768
    assert np.all(out[30:90] > 25_000)


def test_after_the_end_another_sound_begins_from_nothing():
    resampler = Resampler(8_000, 24_000)
    resampler.resample(noise(1_000))
    resampler.finish()
    assert resampler.resample(tone(500, 8_000, 800)) + resampler.finish() == whole(tone(500, 8_000, 800), 8_000, 24_000)


def test_equal_rates_change_nothing():
    assert whole(noise(333), 24_000, 24_000) == noise(333)


def test_rates_without_a_small_ratio_are_refused():
    with pytest.raises(ValueError, match="got 24000:44101"):
        Resampler(44_101, 24_000)


def test_half_a_sample_is_refused():
    with pytest.raises(ValueError, match="multiple of element size"):
        Resampler(8_000, 24_000).resample(b"\0")
