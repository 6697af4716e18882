import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.bridges.speech_segments import LONGEST_WINDOWS, PADDING_WINDOWS, PAUSE_WINDOWS, WINDOW_MS, SpeechSegments
from engines.models import InvalidInput
from engines.parameters import Recognition
from engines.payloads import Array, Payload

WINDOW = 512
SPEECH, QUIET = 0.9, 0.05


def activity(probabilities: list[float], first: int = 0) -> Payload:
    """Window number i holds the sample value i, so that a test can see where it went."""
    numbers = np.arange(first, first + len(probabilities), dtype=np.int16)
    return Payload(
        arrays={"probability": Array.of(np.array(probabilities, np.float32)), "pcm": Array.of(np.repeat(numbers, WINDOW))},
        attributes={"window_ms": WINDOW_MS, "rate": 16_000},
    )


def segments(probabilities: list[float], sizes: list[int]) -> list[list[int]]:
    """The numbers of the windows in each utterance."""
    bridge = SpeechSegments(Recognition())
    utterances: list[Payload] = []
    start = turn = 0
    while start < len(probabilities):
        size = sizes[turn % len(sizes)]
        utterances += bridge.feed(activity(probabilities[start : start + size], start))
        start, turn = start + size, turn + 1
    utterances += bridge.feed(Payload()) + bridge.finish()
    numbers = [utterance.arrays["pcm"].numpy()[::WINDOW].tolist() for utterance in utterances]
    assert [utterance.attributes["start_s"] for utterance in utterances] == [held[0] * WINDOW_MS / 1_000 for held in numbers]
    assert all(utterance.attributes["rate"] == 16_000 for utterance in utterances)
    return numbers


runs = st.lists(st.tuples(st.sampled_from([QUIET, 0.4, SPEECH]), st.integers(1, 120)), max_size=40)


@given(runs=runs, noise=st.integers(0, 2**32 - 1), sizes=st.lists(st.integers(1, 60), min_size=1, max_size=5))
def test_every_speech_window_is_in_exactly_one_utterance(runs: list[tuple[float, int]], noise: int, sizes: list[int]):
    rng = np.random.default_rng(noise)
    probabilities = [level + float(rng.uniform(-0.04, 0.04)) for level, length in runs for _ in range(length)]
    held = segments(probabilities, sizes)
    joined = [number for numbers in held for number in numbers]
    assert joined == sorted(set(joined))
    assert {i for i, probability in enumerate(probabilities) if probability >= 0.5} <= set(joined)
    for numbers in held:
        assert numbers == list(range(numbers[0], numbers[-1] + 1))
        assert len(numbers) <= LONGEST_WINDOWS
        assert max(probabilities[i] for i in numbers) >= 0.35
    assert held == segments(probabilities, [1_000_000])


def test_pauses_cut_and_padding_stays():
    quiet, speech = [QUIET] * 60, [SPEECH] * 40
    first, second = segments([*quiet, *speech, *quiet, *speech, *quiet], [7])
    assert (first[0], first[-1]) == (60 - PADDING_WINDOWS, 99 + PADDING_WINDOWS)
    assert (second[0], second[-1]) == (160 - PADDING_WINDOWS, 199 + PADDING_WINDOWS)


def test_short_pause_does_not_cut():
    (only,) = segments([SPEECH] * 20 + [QUIET] * (PAUSE_WINDOWS - 1) + [SPEECH] * 20, [10])
    assert len(only) == 39 + PAUSE_WINDOWS


def test_an_utterance_is_given_as_soon_as_its_pause_is_long_enough():
    bridge = SpeechSegments(Recognition())
    assert bridge.feed(activity([SPEECH] * 20 + [QUIET] * (PAUSE_WINDOWS - 1))) == []
    assert len(bridge.feed(activity([QUIET]))) == 1
    assert bridge.finish() == []


def test_endless_speech_is_cut_at_its_quietest_window():
    probabilities = [SPEECH] * 1_200
    probabilities[700] = 0.4
    first, second = segments(probabilities, [31])
    assert (first[-1], second[0]) == (699, 700)


def test_what_remains_after_such_a_cut_is_not_forgotten_in_a_pause():
    probabilities = [SPEECH] * LONGEST_WINDOWS + [QUIET] * 60
    probabilities[700] = 0.4
    _, second = segments(probabilities, [31])
    assert (second[0], second[-1]) == (700, LONGEST_WINDOWS - 1 + PADDING_WINDOWS)


@pytest.mark.parametrize("probabilities", [[], [QUIET] * 500])
def test_no_speech_gives_nothing(probabilities: list[float]):
    assert segments(probabilities, [16]) == []


def test_activity_without_audio_is_refused():
    bare = Payload(arrays={"probability": Array.of(np.array([SPEECH], np.float32))})
    with pytest.raises(InvalidInput, match="with_audio"):
        SpeechSegments(Recognition()).feed(bare)
