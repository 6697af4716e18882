"""A voice through Opus and back: all of it, no later than said, and what becomes of it when packets are lost."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import recordings
from fakes import foreign_opus, sounds
from realtime.media.opus import OpusDecoder
from realtime.media.opus_frames import packet_ticks
from realtime.media.opus_stream import OpusListener, OpusSpeaker

DELAY_SAMPLES = 156
FRAME_SAMPLES = 480

Sound = NDArray[np.float64]


def spoken(pcm: bytes, piece_bytes: int = 9_600) -> list[bytes]:
    speaker = OpusSpeaker()
    pieces = (pcm[start : start + piece_bytes] for start in range(0, len(pcm), piece_bytes))
    return [packet for piece in pieces for packet in speaker.speak(piece)] + list(speaker.finish())


def heard(packets: list[bytes]) -> Sound:
    """b"" for a packet that was lost."""
    listener = OpusListener()
    return sound([pcm for packet in packets for pcm in told(listener, packet)] + list(listener.finish()))


def told(listener: OpusListener, packet: bytes) -> list[bytes]:
    return list(listener.hear(packet) if packet else listener.lose(FRAME_SAMPLES))


def sound(pieces: list[bytes]) -> Sound:
    return np.frombuffer(b"".join(pieces), "<i2").astype(np.float64)


def level_db(samples: Sound) -> float:
    return float(10 * np.log10(np.mean(samples**2)))


@pytest.fixture(scope="module")
def sentence() -> bytes:
    return recordings.read_sentences()[0].pcm()


@pytest.mark.parametrize("count", [1, 324, 325, 480, 481, 24_000, 24_324, 24_325])
def test_all_samples_come_out(count: int) -> None:
    packets = spoken(sounds.sine(2).tobytes()[: 2 * count])
    assert len(packets) == -(-(count + DELAY_SAMPLES) // FRAME_SAMPLES)
    assert len(heard(packets)) == len(packets) * FRAME_SAMPLES


@given(st.lists(st.integers(0, 3_001), max_size=6))
def test_pieces_of_any_size_are_the_same_voice(sizes: list[int]) -> None:
    pcm = sounds.sine(1).tobytes()[: sum(sizes)]
    speaker = OpusSpeaker()
    ends = np.cumsum([0, *sizes])
    pieces = [pcm[start:end] for start, end in pairwise(ends)]
    packets = [packet for piece in pieces for packet in speaker.speak(piece)] + list(speaker.finish())
    assert packets == spoken(pcm)
    assert bool(packets) == (sum(sizes) >= 2)


def test_a_tone_keeps_pitch_level_and_end() -> None:
    out = heard(spoken(sounds.sine(1, 440).tobytes()))
    assert sounds.pitch(out[2_400:21_600], 24_000) == pytest.approx(440, abs=1.3)
    assert level_db(out[2_400:21_600]) == pytest.approx(level_db(sounds.sine(1).astype(np.float64)), abs=0.5)
    end = 24_000 + DELAY_SAMPLES
    assert level_db(out[end - 120 : end]) == pytest.approx(level_db(out[2_400:21_600]), abs=2)  # the last 5 ms too
    assert level_db(out[end + 120 :]) < level_db(out[2_400:21_600]) - 15


def test_speech_keeps_its_course_and_is_as_late_as_said(sentence: bytes) -> None:
    voice, out = sound([sentence]), heard(spoken(sentence))
    assert level_db(out) == pytest.approx(level_db(voice), abs=1.5)
    likeness = [float(np.corrcoef(voice, out[late : late + len(voice)])[0, 1]) for late in range(200)]
    assert np.argmax(likeness) == pytest.approx(DELAY_SAMPLES, abs=4)
    assert max(likeness) > 0.75


def test_the_copy_in_the_next_packet_beats_a_guess_and_a_guess_beats_silence(sentence: bytes) -> None:
    packets = spoken(sentence)
    whole = heard(packets)
    lost = np.random.default_rng(3).random(len(packets)) < 0.1
    assert 15 < lost.sum() < 50
    guessing = OpusDecoder()
    arrived = [b"" if gone else packet for packet, gone in zip(packets, lost, strict=True)]
    guessed = sound([guessing.decode(packet) if packet else guessing.conceal(480) for packet in arrived])
    copied = heard(arrived)
    assert len(copied) == len(guessed) == len(whole)
    where = np.repeat(lost, FRAME_SAMPLES)
    copy_error, guess_error = (level_db((out - whole)[where]) - level_db(whole[where]) for out in (copied, guessed))
    assert copy_error < guess_error - 3
    assert guess_error < -0.2  # silence is at 0 dB


def test_what_was_lost_comes_with_the_next_packet() -> None:
    packets = spoken(sounds.sine(1).tobytes())
    listener = OpusListener()
    given = [packets[0], packets[1], b"", packets[3], b"", b"", b"", packets[7], packets[8]]
    came = [[len(pcm) // 2 for pcm in told(listener, packet)] for packet in given]
    assert came == [[480], [480], [], [480, 480], [], [], [], [960, 480, 480], [480]]
    assert [told(listener, b""), list(map(len, listener.finish()))] == [[], [960]]


@pytest.mark.parametrize("lost", [1, 479, 481, 2_881, 24_000, 60_007])
def test_a_loss_of_any_length_is_as_long_as_it_was_and_ends_in_silence_and_the_copy(lost: int) -> None:
    packets = spoken(sounds.sine(1).tobytes())
    listener = OpusListener()
    for packet in packets[:20]:
        list(listener.hear(packet))
    assert list(listener.lose(lost)) == []
    out = sound(list(listener.hear(packets[22])))
    assert len(out) == lost + FRAME_SAMPLES
    between = out[2_880 : lost - FRAME_SAMPLES]
    assert not between.any()
    assert lost < FRAME_SAMPLES or level_db(out[-2 * FRAME_SAMPLES :]) > 70


def test_a_long_guess_fades_into_silence() -> None:
    listener = OpusListener()
    for packet in spoken(sounds.sine(1).tobytes())[:20]:
        list(listener.hear(packet))
    list(listener.lose(9_600))
    out = sound(list(listener.pause(480)))
    assert np.abs(out[2_870:2_880]).max() < 0.05 * np.abs(out[2_000:2_400]).max()
    assert not out[2_880:].any()


@pytest.mark.parametrize("samples", [1, 480, 24_001])
def test_a_pause_is_silence_of_its_length(samples: int) -> None:
    listener = OpusListener()
    list(listener.hear(spoken(sounds.sine(1).tobytes())[0]))
    assert b"".join(listener.pause(samples)) == bytes(2 * samples)


def test_a_long_packet_brings_the_copy_of_a_long_one() -> None:
    packets = foreign_opus.packets(sounds.sine(1.2, 440, 48_000), 60)
    listener = OpusListener()
    list(listener.hear(packets[0]))
    assert list(listener.lose(1_440)) == []
    assert [len(pcm) // 2 for pcm in listener.hear(packets[2])] == [1_440, 1_440]


def test_a_damaged_packet_counts_as_lost() -> None:
    packets = spoken(sounds.sine(1, 440).tobytes())
    listener = OpusListener()
    pieces: list[bytes] = []
    for index, packet in enumerate(packets):
        pieces += listener.hear(b"\xf2\xff" if index % 10 == 5 else packet)
    out = sound(pieces)
    assert listener.damaged == 5
    assert len(out) == len(packets) * FRAME_SAMPLES
    assert sounds.pitch(out[2_400:21_600], 24_000) == pytest.approx(440, abs=3)


GOOD = spoken(sounds.sine(0.2).tobytes())


@given(st.lists(st.one_of(st.just(b""), st.binary(max_size=60), st.sampled_from(GOOD)), max_size=20))
def test_what_comes_out_is_as_long_as_what_came_in_whatever_it_was(packets: list[bytes]) -> None:
    listener, length = OpusListener(), 0
    for packet in packets:
        pieces = told(listener, packet)
        assert all(0 < len(pcm) <= 9_600 for pcm in pieces)
        length += sum(map(len, pieces))
    length += sum(map(len, listener.finish()))
    assert length == sum(packet_ticks(packet) or 960 * (not packet) for packet in packets)
