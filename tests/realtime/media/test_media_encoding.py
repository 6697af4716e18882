"""Formats as their readers know them."""

import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from fakes import sounds
from realtime.media.decoding import decoded
from realtime.media.encoding import encoder_for
from realtime.media.formats import FORMATS, AudioFormat

MAGIC: dict[AudioFormat, bytes] = {"mp3": b"\xff", "wav": b"RIFF", "opus": b"OggS", "flac": b"fLaC"}
SLACK_S = {"mp3": 0.1, "wav": 0.0, "opus": 0.03, "flac": 0.0}


def encoded(format: AudioFormat, pcm: bytes, piece_bytes: int) -> bytes:
    encoder = encoder_for(format, sounds.RATE)
    pieces = [encoder.encode(pcm[start : start + piece_bytes]) for start in range(0, len(pcm), piece_bytes)]
    return b"".join(pieces) + encoder.finish()


def read(format: AudioFormat, data: bytes) -> tuple[NDArray[np.float32], int]:
    if format not in ("pcm", "flac"):
        return sounds.read(data)
    pcm = data if format == "pcm" else b"".join(decoded(data, sounds.RATE))
    return np.frombuffer(pcm, "<i2").astype(np.float32) / np.float32(32_768), sounds.RATE


@pytest.mark.parametrize("format", ["mp3", "wav", "opus", "flac"])
@pytest.mark.parametrize("piece_bytes", [2, 958, 48_000])
def test_a_tone_keeps_its_length_and_pitch(format: AudioFormat, piece_bytes: int) -> None:
    data = encoded(format, sounds.sine(0.7).tobytes(), piece_bytes)
    assert data.startswith(MAGIC[format])
    samples, rate = read(format, data)
    assert len(samples) / rate == pytest.approx(0.7, abs=SLACK_S[format])
    assert sounds.pitch(samples, rate) == pytest.approx(440, abs=5)


@pytest.mark.parametrize("format", ["wav", "pcm", "flac"])
def test_lossless_formats_lose_nothing(format: AudioFormat) -> None:
    original = sounds.sine(0.3)
    data = encoded(format, original.tobytes(), 1_000)
    assert np.array_equal(read(format, data)[0], original.astype(np.float32) / 32_768)


@pytest.mark.parametrize("format", FORMATS)
def test_audio_comes_out_before_all_has_gone_in(format: AudioFormat) -> None:
    encoder = encoder_for(format, sounds.RATE)
    assert encoder.encode(sounds.sine(0.12).tobytes())


@given(st.lists(st.integers(0, 3_000), max_size=8))
def test_a_wav_stream_has_one_header(sizes: list[int]) -> None:
    encoder = encoder_for("wav", sounds.RATE)
    data = b"".join(encoder.encode(bytes(2 * size)) for size in sizes) + encoder.finish()
    assert data.count(b"RIFF") == 1
    assert len(data) == 44 + 2 * sum(sizes)
    assert struct.unpack("<I", data[4:8]) == struct.unpack("<I", data[40:44]) == (0xFFFF_FFFF,)


@pytest.mark.parametrize("format", FORMATS)
def test_no_audio_at_all_is_no_failure(format: AudioFormat) -> None:
    assert len(encoder_for(format, sounds.RATE).finish()) in (0, 44)


def test_a_rate_that_the_codec_does_not_know_is_refused() -> None:
    with pytest.raises(ValueError, match="libopus"):
        encoder_for("opus", 11_111)
