from collections.abc import Callable
from pathlib import Path
from typing import cast

import msgspec
import numpy as np
import pytest

from engines.models import InvalidInput
from engines.models.smart_turn import SmartTurn, features
from engines.payloads import Payload, audio
from engines.resampling import Samples, resample, to_pcm
from recordings import RATE, read_by_espeak, read_sentences, silence

pytestmark = pytest.mark.real_models


@pytest.fixture(scope="module")
def turn(weights: Callable[[str], Path]) -> SmartTurn:
    return SmartTurn.load(weights("smart-turn"), {})


def heard(samples: Samples, rate: int = RATE) -> Payload:
    return audio(to_pcm(samples).tobytes(), rate)


def decide(turn: SmartTurn, payloads: list[Payload]) -> list[float]:
    answers = turn.run([(None, payload) for payload in payloads])
    rows = [answer for answer in answers if not isinstance(answer, InvalidInput)]
    assert len(rows) == len(payloads)
    return [cast(float, row[0].payload.attributes["probability"]) for row in rows]


def with_pause(samples: Samples) -> Samples:
    return np.concatenate([samples, silence(0.2)])


def test_tells_finished_sentences_from_broken_off_ones(turn: SmartTurn):
    sentences = read_sentences()
    finished = decide(turn, [heard(with_pause(sentence.samples)) for sentence in sentences])
    broken_off = decide(turn, [heard(with_pause(sentence.samples[: len(sentence.samples) // 2])) for sentence in sentences])
    assert np.median(finished) > np.median(broken_off) + 0.3


def test_batch_equals_solo(turn: SmartTurn):
    payloads = [heard(with_pause(sentence.samples)) for sentence in read_sentences()]
    alone = [decide(turn, [payload])[0] for payload in payloads]
    np.testing.assert_allclose(decide(turn, payloads), alone, atol=1e-4)


def test_only_the_last_eight_seconds_count(turn: SmartTurn):
    sentence = resample(read_sentences()[0].samples, RATE, 16_000)
    long = np.concatenate([sentence, sentence, sentence])
    np.testing.assert_array_equal(features(long), features(long[-8 * 16_000 :]))
    assert features(sentence[:100]).shape == (80, 800)


def test_any_rate(turn: SmartTurn):
    question = with_pause(read_by_espeak("What is the capital of France?").samples)
    (expected,) = decide(turn, [heard(question)])
    for rate in (16_000, 48_000):
        assert decide(turn, [heard(resample(question, RATE, rate), rate)]) == pytest.approx([expected], abs=0.05)


@pytest.mark.parametrize("samples", [0, 1, 3 * RATE])
def test_silence_is_judged_too(turn: SmartTurn, samples: int):
    (probability,) = decide(turn, [heard(np.zeros(samples, np.float32))])
    assert 0 <= probability <= 1


def test_bad_row_leaves_the_others_alone(turn: SmartTurn):
    bad, good = turn.run([(None, Payload()), (None, heard(silence(1.0)))])
    assert isinstance(bad, InvalidInput)
    assert not isinstance(good, InvalidInput)


def test_unknown_option_is_named(weights: Callable[[str], Path]):
    with pytest.raises(msgspec.ValidationError, match="cpus"):
        SmartTurn.load(weights("smart-turn"), {"cpus": 1})
