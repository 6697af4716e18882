"""What a call sends between two answers."""

import numpy as np
import pytest
from numpy.typing import NDArray

import recordings
from realtime.media.opus import OpusDecoder
from realtime.media.opus_frames import OPUS_PAUSE, OPUS_SILENCE
from realtime.media.opus_stream import OpusSpeaker

Sound = NDArray[np.int64]


def spoken(utterance: recordings.Utterance) -> list[bytes]:
    return list(OpusSpeaker().speak(utterance.pcm()))


def heard(decoder: OpusDecoder, packets: list[bytes]) -> Sound:
    return np.frombuffer(b"".join(map(decoder.decode, packets)), "<i2").astype(np.int64)


def test_it_is_20_ms_of_nothing() -> None:
    assert OpusDecoder().decode(OPUS_SILENCE) == bytes(960)


def test_it_follows_speech_without_a_click() -> None:
    """Cut at each of its 40 loudest packets: nowhere a larger step between two samples than in the speech before it."""
    packets = spoken(recordings.read_sentences()[0])
    loudness = np.abs(heard(OpusDecoder(), packets)).reshape(-1, 480).mean(axis=1)
    for cut in np.argsort(loudness)[-40:]:
        decoder = OpusDecoder()
        voice = heard(decoder, packets[: cut + 1])[-2_400:]
        pause = heard(decoder, [OPUS_SILENCE] * 3)
        assert not pause[480:].any()
        steps = np.abs(np.diff(np.concatenate([voice, pause])))
        assert steps[len(voice) - 1 :].max() <= steps[: len(voice) - 1].max()


def test_a_pause_after_it_is_nothing_too() -> None:
    decoder = OpusDecoder()
    heard(decoder, [*spoken(recordings.read_sentences()[0])[:100], OPUS_SILENCE])
    assert not heard(decoder, [OPUS_PAUSE] * 3).any()


@pytest.mark.parametrize("pause", [[], [OPUS_PAUSE], [OPUS_PAUSE] * 20])
def test_the_next_answer_begins_as_if_it_were_the_first(pause: list[bytes]) -> None:
    first, second = map(spoken, recordings.read_sentences()[:2])
    decoder = OpusDecoder()
    heard(decoder, [*first[:100], OPUS_SILENCE, *pause])
    after, alone = heard(decoder, second), heard(OpusDecoder(), second)
    assert np.array_equal(after[480:], alone[480:])
    assert np.abs(after[:480] - alone[:480]).max() < 100


def test_an_answer_that_was_held_goes_on() -> None:
    packets = spoken(recordings.read_sentences()[0])
    decoder = OpusDecoder()
    heard(decoder, [*packets[:100], OPUS_SILENCE, OPUS_SILENCE])
    resumed, unbroken = heard(decoder, packets[100:]), heard(OpusDecoder(), packets)[48_000:]
    error = (resumed - unbroken)[2_400:]
    assert np.sum(error**2) < 0.001 * np.sum(unbroken[2_400:] ** 2)  # 100 ms later nothing is left of the break
