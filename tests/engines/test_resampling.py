import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.resampling import Quality, Samples, StreamResampler, resample, to_float, to_pcm

RATES = [8_000, 16_000, 22_050, 24_000, 44_100, 48_000]
TARGETS = [16_000, 24_000]


def tone(frequency: float, rate: int, seconds: float) -> Samples:
    return (0.5 * np.sin(2 * np.pi * frequency * np.arange(int(rate * seconds)) / rate)).astype(np.float32)


def loudest_frequency(samples: Samples, rate: int) -> float:
    spectrum = np.abs(np.fft.rfft(samples * np.hanning(len(samples))))
    return float(np.argmax(spectrum)) * rate / len(samples)


def streamed(samples: Samples, source: int, target: int, sizes: list[int], quality: Quality = Quality.HIGH) -> Samples:
    resampler = StreamResampler(source, target, quality)
    parts: list[Samples] = []
    start = 0
    while start < len(samples):
        size = sizes[len(parts) % len(sizes)]
        parts.append(resampler.push(samples[start : start + size]))
        start += size
    return np.concatenate([*parts, resampler.flush()])


@pytest.mark.parametrize("source", RATES)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("quality", list(Quality))
def test_tone_keeps_its_frequency_level_and_length(source: int, target: int, quality: Quality):
    out = streamed(tone(1_000, source, 1.0), source, target, [source // 50], quality)
    assert len(out) == target
    assert loudest_frequency(out, target) == pytest.approx(1_000, abs=1.5)
    middle = out[target // 4 : -target // 4]
    assert np.sqrt(np.mean(middle**2)) == pytest.approx(0.5 / np.sqrt(2), rel=0.001)


@given(
    source=st.sampled_from(RATES),
    target=st.sampled_from(TARGETS),
    sizes=st.lists(st.integers(1, 5_000), min_size=1, max_size=8),
    quality=st.sampled_from(Quality),
)
def test_stream_equals_whole(source: int, target: int, sizes: list[int], quality: Quality):
    noise = np.random.default_rng(7).uniform(-0.9, 0.9, 12_345).astype(np.float32)
    np.testing.assert_allclose(
        streamed(noise, source, target, sizes, quality), resample(noise, source, target, quality), atol=3e-6
    )


@pytest.mark.parametrize(
    ("quality", "source", "target", "at_most_ms"), [(Quality.LOW, 24_000, 16_000, 22), (Quality.LOW, 22_050, 24_000, 2)]
)
def test_low_quality_lags_little(quality: Quality, source: int, target: int, at_most_ms: float):
    resampler = StreamResampler(source, target, quality)
    given_s = given_out = 0
    for _ in range(50):
        given_s += source // 50
        given_out += len(resampler.push(np.zeros(source // 50, np.float32)))
        assert given_s / source - given_out / target <= at_most_ms / 1_000


def test_flush_begins_anew():
    resampler = StreamResampler(24_000, 16_000)
    first = [resampler.push(tone(440, 24_000, 0.5)), resampler.flush()]
    second = [resampler.push(tone(440, 24_000, 0.5)), resampler.flush()]
    np.testing.assert_array_equal(np.concatenate(first), np.concatenate(second))


def test_nothing_in_nothing_out():
    assert len(StreamResampler(48_000, 16_000).flush()) == 0
    assert len(resample(np.zeros(0, np.float32), 48_000, 16_000)) == 0


def test_pcm_there_and_back():
    pcm = np.array([-32_768, -1, 0, 1, 32_767], np.int16)
    np.testing.assert_array_equal(to_pcm(to_float(pcm)), pcm)
    np.testing.assert_array_equal(to_pcm(np.array([-2.0, 2.0], np.float32)), np.array([-32_768, 32_767], np.int16))


@given(
    source=st.sampled_from(RATES),
    target=st.sampled_from(TARGETS),
    heard=st.lists(st.integers(0, 9_000), max_size=8),
    rest=st.lists(st.integers(1, 5_000), min_size=1, max_size=4),
    quality=st.sampled_from(Quality),
)
def test_another_one_goes_on_exactly_where_one_was_saved(
    source: int, target: int, heard: list[int], rest: list[int], quality: Quality
):
    first, second = StreamResampler(source, target, quality), StreamResampler(source, target, quality)
    noise = np.random.default_rng(7).uniform(-0.9, 0.9, 100_000).astype(np.float32)
    for size in heard:
        first.push(noise[:size])
    second.restore(*first.saved())
    tail = noise[: sum(rest)]
    cut = np.cumsum(rest)[:-1]
    going_on = [first.push(tail), first.flush()]
    gone_over = [*(second.push(part) for part in np.split(tail, cut)), second.flush()]
    np.testing.assert_array_equal(np.concatenate(gone_over), np.concatenate(going_on))


def test_what_is_saved_stays_small():
    resampler = StreamResampler(48_000, 16_000, Quality.LOW)
    for _ in range(500):
        resampler.push(np.zeros(960, np.float32))
        assert resampler.saved()[0].nbytes <= 70_000


@pytest.mark.parametrize(("fed", "given_out"), [(20_000, 5_000), (2_400, 1_601), (2_400, 0)])
def test_what_was_never_saved_is_refused(fed: int, given_out: int):
    with pytest.raises(ValueError, match=r"(fed|given): expected .*, got \d+"):
        StreamResampler(24_000, 16_000, Quality.LOW).restore(np.zeros(fed, np.float32), given_out)
