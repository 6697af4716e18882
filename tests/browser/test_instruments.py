"""The instruments of the browser tests, tried on sound of which everything is known."""

import numpy as np
import pytest

import recordings
from browser import microphone
from browser.ears import Run, place, voiced_runs
from browser.lateness import gaps
from browser.microphone import RATE
from recordings import Samples

NEAR_S = 0.005


@pytest.fixture(scope="module")
def speech() -> Samples:
    """21 s of it."""
    sentences = np.concatenate([utterance.samples for utterance in recordings.read_sentences()])
    return recordings.resample(sentences, recordings.RATE, RATE)


def hear(samples: Samples, delay_s: float = 0.3, loudness: float = 0.9) -> list[Run]:
    quiet = np.zeros(int(delay_s * RATE) + 57, dtype=np.float32)
    return voiced_runs(np.concatenate([quiet, samples * np.float32(loudness)]))


def with_hole(samples: Samples, at_s: float, length_s: float) -> Samples:
    at = int(at_s * RATE)
    return np.concatenate([samples[:at], np.zeros(int(length_s * RATE), dtype=np.float32), samples[at:]])


def test_an_answer_as_it_was_made_has_no_gap(speech: Samples) -> None:
    assert gaps(voiced_runs(speech), hear(speech)) == 0


@pytest.mark.parametrize("length_s", [0.08, 0.2, 0.8])
@pytest.mark.parametrize("at_s", [3.1, 10.0, 17.6])
def test_a_hole_is_one_gap_wherever_it_is(speech: Samples, at_s: float, length_s: float) -> None:
    assert gaps(voiced_runs(speech), hear(with_hole(speech, at_s, length_s))) == 1


def test_two_holes_are_two_gaps(speech: Samples) -> None:
    assert gaps(voiced_runs(speech), hear(with_hole(with_hole(speech, 15, 0.1), 5, 0.3))) == 2


def test_utterances_are_found_where_they_were_heard_although_the_file_slipped() -> None:
    written = microphone.script((utterance, 2.0) for utterance in recordings.spoken_commands())
    third = written.spoken[2]
    places = place(written, hear(with_hole(written.samples, third.begin_s - 1, 0.2), delay_s=0.5))
    assert len(places) == len(written.spoken)
    for number, found in enumerate(places):
        slipped_s = 0.5 + (0.2 if number >= 2 else 0.0)
        assert found.begin - found.spoken.begin_s == pytest.approx(slipped_s, abs=NEAR_S)
        assert found.end - found.spoken.end_s == pytest.approx(slipped_s, abs=NEAR_S)
