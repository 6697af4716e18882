from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec
import numpy as np
import pytest
from numpy.typing import NDArray

from engines.models import InvalidInput, Produced
from engines.models.onnx_session import onnx_session
from engines.models.silero_vad import Listening, SileroVad
from engines.parameters import Activity
from engines.payloads import Payload, audio
from engines.resampling import Samples, resample, to_float, to_pcm
from recordings import RATE, noise, read_sentences, silence, spoken_commands

pytestmark = pytest.mark.real_models


@pytest.fixture(scope="module")
def vad(weights: Callable[[str], Path]) -> SileroVad:
    return SileroVad.load(weights("silero-vad"), {})


@pytest.fixture(scope="module")
def sentence() -> Samples:
    return np.concatenate([silence(0.5), read_sentences()[1].samples, silence(0.5)])


def push(vad: SileroVad, stream: Listening, samples: Samples, rate: int = RATE) -> list[Produced]:
    (answer,) = vad.run([(stream, audio(to_pcm(samples).tobytes(), rate))])
    assert not isinstance(answer, InvalidInput)
    return answer


def probabilities(chunks: list[Produced]) -> Samples:
    arrays = [chunk.payload.arrays["probability"].numpy().astype(np.float32) for chunk in chunks]
    return np.concatenate([np.zeros(0, np.float32), *arrays])


def whole(vad: SileroVad, samples: Samples, rate: int = RATE) -> Samples:
    stream = vad.open(Activity())
    return probabilities(push(vad, stream, samples, rate) + vad.flush(stream))


def test_hears_speech_in_every_recording(vad: SileroVad):
    for utterance in [*read_sentences(), *spoken_commands()]:
        heard = whole(vad, np.concatenate([silence(0.5), utterance.samples, silence(0.5)])) > 0.5
        assert heard.any(), utterance.name
        assert not heard[:10].any(), utterance.name


def test_equals_the_network_called_by_hand(vad: SileroVad, weights: Callable[[str], Path], sentence: Samples):
    """Each window with the 64 samples before it, as the weights' authors call it."""
    session = onnx_session(weights("silero-vad") / "silero_vad.onnx")
    at_16k = to_float(to_pcm(resample(sentence, RATE, 16_000)))
    at_16k = at_16k[: len(at_16k) // 512 * 512]
    padded = np.pad(at_16k, (64, 0))
    state = np.zeros((2, 1, 128), np.float32)
    expected: list[float] = []
    for start in range(0, len(at_16k), 512):
        feed = {"input": padded[None, start : start + 576], "state": state, "sr": np.array(16_000, np.int64)}
        probability, state = session.run(None, feed)
        expected.append(float(probability[0, 0]))
    np.testing.assert_allclose(whole(vad, at_16k, 16_000), expected, atol=1e-6)


@pytest.mark.parametrize(
    "samples", [np.zeros(3 * RATE, np.float32), silence(3.0), noise(3.0, 0.03)], ids=["zeros", "room", "noise"]
)
def test_hears_none_where_nobody_speaks(vad: SileroVad, samples: Samples):
    assert whole(vad, samples).max() < 0.5


@pytest.mark.parametrize("sizes", [[480], [1], [12_345, 7], [RATE * 5], [801, 33, 2_399]])
def test_any_chunking_gives_the_same(vad: SileroVad, sentence: Samples, sizes: list[int]):
    samples = sentence if sizes != [1] else sentence[: RATE // 2]
    stream = vad.open(Activity())
    chunks: list[Produced] = []
    start = turn = 0
    while start < len(samples):
        size = sizes[turn % len(sizes)]
        chunks += push(vad, stream, samples[start : start + size])
        start, turn = start + size, turn + 1
    chunks += vad.flush(stream)
    np.testing.assert_allclose(probabilities(chunks), whole(vad, samples), atol=1e-6)
    ends = np.cumsum([chunk.units for chunk in chunks])
    assert [chunk.pts for chunk in chunks] == pytest.approx([0.0, *(ends[:-1] * 0.032)])


def test_batch_equals_solo(vad: SileroVad, sentence: Samples):
    inputs = [sentence, sentence[RATE:], silence(2.0), sentence[: RATE // 3], np.zeros(0, np.float32)]
    streams = [vad.open(Activity()) for _ in inputs]
    vad.run([(stream, audio(to_pcm(samples).tobytes(), RATE)) for stream, samples in zip(streams, inputs, strict=True)])
    answers = vad.run([(stream, audio(to_pcm(sentence).tobytes(), RATE)) for stream in streams])
    for samples, answer in zip(inputs, answers, strict=True):
        alone = vad.open(Activity())
        push(vad, alone, samples)
        assert not isinstance(answer, InvalidInput)
        np.testing.assert_allclose(probabilities(answer), probabilities(push(vad, alone, sentence)), atol=1e-6)


@pytest.mark.parametrize("rate", [8_000, 16_000, 22_050, 44_100, 48_000])
def test_any_rate(vad: SileroVad, sentence: Samples, rate: int):
    heard = whole(vad, resample(sentence, RATE, rate), rate)
    assert len(heard) == len(whole(vad, sentence))
    assert np.mean((heard > 0.5) == (whole(vad, sentence) > 0.5)) > 0.95


def test_gives_its_audio_when_asked(vad: SileroVad, sentence: Samples):
    at_16k = resample(sentence, RATE, 16_000)
    stream = vad.open(Activity(with_audio=True))
    chunks = [*push(vad, stream, at_16k[:10_001], 16_000), *push(vad, stream, at_16k[10_001:], 16_000), *vad.flush(stream)]
    pcm = np.concatenate([chunk.payload.arrays["pcm"].numpy() for chunk in chunks])
    assert all(chunk.payload.attributes == {"window_ms": 32, "rate": 16_000} for chunk in chunks)
    assert len(pcm) == 512 * sum(chunk.units for chunk in chunks)
    np.testing.assert_array_equal(pcm[: len(at_16k)], to_pcm(at_16k))
    assert not pcm[len(at_16k) :].any()


def test_silence_in_between_leaves_no_trace_of_another_stream(vad: SileroVad, sentence: Samples):
    before = whole(vad, sentence)
    whole(vad, noise(2.0, 0.3))
    np.testing.assert_array_equal(whole(vad, sentence), before)


def test_bad_rows_leave_the_others_alone(vad: SileroVad, sentence: Samples):
    started = vad.open(Activity())
    push(vad, started, sentence[:2_400])
    good = audio(to_pcm(sentence).tobytes(), RATE)
    rows = [vad.open(Activity()) for _ in range(3)]
    answers = vad.run([(rows[0], Payload()), (started, audio(bytes(96), 16_000)), (rows[1], audio(b"", 96_000)), (rows[2], good)])
    assert [str(answer).split(":")[0] for answer in answers[:3]] == ["pcm", "rate", "rate"]
    assert not isinstance(answers[3], InvalidInput)
    stream = vad.open(Activity())
    np.testing.assert_allclose(probabilities(answers[3]), probabilities(push(vad, stream, sentence)), atol=1e-6)


def test_nothing_pushed_nothing_owed(vad: SileroVad):
    assert vad.flush(vad.open(Activity())) == []


def test_unknown_option_is_named(weights: Callable[[str], Path]):
    with pytest.raises(msgspec.ValidationError, match="thread"):
        SileroVad.load(weights("silero-vad"), {"thread": 1})


def test_a_network_that_fails_in_the_middle_leaves_the_streams_as_they_were(vad: SileroVad, sentence: Samples):
    class Failing:
        """At its third call from now on."""

        calls = 0

        def run(
            self, output_names: Sequence[str] | None, input_feed: Mapping[str, NDArray[np.generic]]
        ) -> list[NDArray[np.float32]]:
            self.calls += 1
            if self.calls == 3:
                raise MemoryError("scripted")
            return vad._session.run(output_names, input_feed)  # pyright: ignore[reportPrivateUsage] (the real one inside)

    failing = SileroVad(Failing())
    stream, untouched = vad.open(Activity()), vad.open(Activity())
    for each in (stream, untouched):
        push(vad, each, sentence[:RATE])
    with pytest.raises(MemoryError):
        push(failing, stream, sentence[RATE : 2 * RATE])
    again, expected = (push(vad, each, sentence[RATE : 2 * RATE]) for each in (stream, untouched))
    np.testing.assert_array_equal(probabilities(again), probabilities(expected))
