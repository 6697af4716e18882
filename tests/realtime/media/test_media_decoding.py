"""Uploads of every kind and quality."""

import io
import struct
from collections.abc import Callable
from pathlib import Path
from unittest.mock import Mock

import av
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fakes import sounds
from realtime.media import decoding
from realtime.media.decoding import NotAudio, decoded
from realtime.media.encoding import encoder_for

RATE = 16_000


def whole(upload: bytes, rate: int = RATE) -> np.ndarray[tuple[int], np.dtype[np.int16]]:
    return np.frombuffer(b"".join(decoded(upload, rate)), np.int16)


@pytest.mark.parametrize(
    ("container", "subtype", "rate", "channels"),
    [
        ("WAV", "PCM_16", 44_100, 2),
        ("WAV", "PCM_24", 48_000, 1),
        ("WAV", "FLOAT", 48_000, 6),
        ("WAV", "ULAW", 8_000, 1),
        ("FLAC", "PCM_16", 44_100, 3),
        ("OGG", "VORBIS", 44_100, 2),
        ("OGG", "OPUS", 48_000, 2),
        ("MP3", "MPEG_LAYER_III", 44_100, 2),
        ("AIFF", "PCM_16", 22_050, 1),
    ],
)
def test_pitch_length_and_loudness_survive(container: sounds.Container, subtype: str, rate: int, channels: int) -> None:
    samples = whole(sounds.file(sounds.sine(1.5, 440, rate), rate, container, subtype, channels))
    assert len(samples) / RATE == pytest.approx(1.5, abs=0.05)
    assert sounds.pitch(samples, RATE) == pytest.approx(440, abs=2)
    assert np.abs(samples[2_000:-2_000]).max() == pytest.approx(13_107, rel=0.2)


@pytest.mark.parametrize(("container", "codec"), [("mp4", "aac"), ("webm", "libopus"), ("adts", "aac"), ("mov", "alac")])
def test_what_phones_and_browsers_record(container: str, codec: str) -> None:
    samples = whole(recorded(container, codec, sounds.sine(1, 440, 48_000), 48_000))
    assert len(samples) / RATE == pytest.approx(1, abs=0.1)
    assert sounds.pitch(samples, RATE) == pytest.approx(440, abs=2)


def test_pieces_are_half_a_second() -> None:
    pieces = list(decoded(sounds.file(sounds.sine(1.2, rate=RATE), RATE, "WAV"), RATE))
    assert [len(piece) for piece in pieces] == [16_000, 16_000, 6_400]


def header_of(rate: int, channels: int) -> bytes:
    layout = struct.pack("<IHHIIHH", 16, 1, channels, rate, rate, 2, 16)
    return b"RIFF\xff\xff\xff\xffWAVEfmt " + layout + b"data" + struct.pack("<I", 400) + bytes(400)


@pytest.mark.parametrize(
    ("upload", "got"),
    [
        pytest.param(b"", "an empty file", id="empty"),
        pytest.param(b"just words\n" * 50, "not wav, mp3", id="text"),
        pytest.param(b"#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\nfile:///etc/passwd\n", "not wav, mp3", id="playlist"),
        pytest.param(b"ffconcat version 1.0\nfile /etc/passwd\n", "not wav, mp3", id="concat"),
        pytest.param(bytes(50_000), "not wav, mp3", id="zeros"),
        pytest.param(b"\x89PNG\r\n\x1a\n" + bytes(200), "not wav, mp3", id="png"),
        pytest.param(b"PK\x03\x04" + bytes(200), "not wav, mp3", id="zip"),
        pytest.param(sounds.file(sounds.sine(1), RATE, "WAV")[:20], "not wav, mp3", id="cut in the header"),
        pytest.param(sounds.file(sounds.sine(1), RATE, "WAV")[:44], "missing or damaged", id="header alone"),
        pytest.param(header_of(1, 1), "sample rate of 1 Hz", id="1 Hz"),
        pytest.param(header_of(4_000_000_000, 1), "not wav, mp3", id="4 GHz"),
        pytest.param(header_of(16_000, 65_535), "header makes no sense", id="65535 channels"),
        pytest.param(header_of(16_000, 60), "60 channels", id="60 channels"),
    ],
)
def test_what_is_no_audio_says_what_it_is(upload: bytes, got: str) -> None:
    with pytest.raises(NotAudio, match=got):
        whole(upload)


def test_no_protocol_is_spoken_even_if_a_playlist_got_in(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "secret.wav").write_bytes(WAV)
    playlist = f"ffconcat version 1.0\nfile '{tmp_path}/secret.wav'\n".encode()
    open_options = decoding.OPEN_OPTIONS | {"format_whitelist": "concat,wav", "safe": "0"}
    monkeypatch.setattr(decoding, "OPEN_OPTIONS", open_options)
    with pytest.raises(NotAudio):
        whole(playlist)
    monkeypatch.setattr(decoding, "OPEN_OPTIONS", open_options | {"protocol_whitelist": "file"})
    assert len(whole(playlist))  # so it was the protocol that was missing


def test_a_demuxer_that_asks_for_another_file_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    opened = Mock(wraps=av.open)
    monkeypatch.setattr(decoding.av, "open", opened)
    assert len(whole(WAV))
    with pytest.raises(PermissionError, match="/etc/passwd"):
        opened.call_args.kwargs["io_open"]("file:///etc/passwd", 1, {})


@pytest.mark.parametrize("container", ["WAV", "FLAC", "MP3", "OGG"])
def test_a_file_that_breaks_off_gives_what_it_has(container: sounds.Container) -> None:
    upload = sounds.file(sounds.sine(20, rate=44_100), 44_100, container)
    samples = whole(upload[: len(upload) // 2])
    assert 3 < len(samples) / RATE < 15


def test_a_film_without_sound_is_no_audio() -> None:
    out = io.BytesIO()
    with av.open(out, "w", format="mp4") as container:
        stream = container.add_stream("mpeg4", 10)  # pyright: ignore[reportUnknownMemberType]  PyAV leaves **kwargs open
        stream.width = stream.height = 32
        for _ in range(5):
            container.mux(stream.encode(av.VideoFrame(32, 32, "yuv420p")))  # pyright: ignore[reportUnknownMemberType]
        container.mux(stream.encode(None))  # pyright: ignore[reportUnknownMemberType]
    with pytest.raises(NotAudio, match="without an audio track"):
        whole(out.getvalue())


def test_hours_of_silence_in_a_small_file_are_refused_before_they_are_decoded() -> None:
    upload = bytearray(sounds.file(sounds.sine(1, rate=8_000), 8_000, "FLAC"))
    samples_declared = 10 * 3600 * 8_000
    upload[21] = (upload[21] & 0xF0) | (samples_declared >> 32)  # STREAMINFO: 36 bits of total samples
    upload[22:26] = (samples_declared & 0xFFFF_FFFF).to_bytes(4, "big")
    with pytest.raises(NotAudio, match=r"36000 s of audio; at most 14400 s"):
        whole(bytes(upload))


def test_undeclared_length_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoding, "MAX_DURATION_S", 2)
    encoder = encoder_for("flac", sounds.RATE)
    upload = encoder.encode(sounds.sine(4).tobytes()) + encoder.finish()
    with pytest.raises(NotAudio, match="more than 2 s"):
        whole(upload)


def test_a_damaged_packet_is_left_out() -> None:
    for position in range(M4A.find(b"mdat") + 4, M4A.find(b"moov") - 4, 61):
        upload = bytearray(M4A)
        upload[position] ^= 0xFF
        assert len(whole(bytes(upload))) > len(whole(M4A)) / 2, position


@pytest.mark.parametrize(
    ("box", "at", "byte", "got"),
    [
        pytest.param(b"esds", 35, 1, "header makes no sense", id="a profile that there is no decoder for"),
        pytest.param(b"esds", 38, 1, "damaged", id="a rate that there is not"),
        pytest.param(b"edts", -1, 127, "the codec of an unknown name", id="no codec at all"),
    ],
)
def test_a_header_that_makes_no_sense_is_refused(box: bytes, at: int, byte: int, got: str) -> None:
    upload = bytearray(M4A)
    upload[M4A.find(box) + at] = byte
    with pytest.raises(NotAudio, match=got):
        whole(bytes(upload))


@settings(deadline=None, max_examples=60)
@given(st.data())
def test_damage_never_does_more_than_refuse(data: st.DataObject) -> None:
    make: Callable[[], bytes] = data.draw(st.sampled_from([lambda: WAV, lambda: FLAC, lambda: MP3, lambda: OGG, lambda: M4A]))
    upload = bytearray(make())
    for _ in range(data.draw(st.integers(1, 12))):
        upload[data.draw(st.integers(0, len(upload) - 1))] = data.draw(st.integers(0, 255))
    try:
        samples = whole(bytes(upload[: data.draw(st.integers(1, len(upload)))]))
    except NotAudio:
        return
    assert len(samples) > 0


def recorded(container: str, codec: str, samples: np.ndarray[tuple[int], np.dtype[np.int16]], rate: int) -> bytes:
    """A file of a kind that libsndfile does not write."""
    out = io.BytesIO()
    with av.open(out, "w", format=container) as target:
        stream = target.add_stream(codec, rate)  # pyright: ignore[reportUnknownMemberType]
        assert isinstance(stream, av.AudioStream)
        stream.layout = "mono"
        frame = av.AudioFrame.from_ndarray(samples.reshape(1, -1), format="s16", layout="mono")
        frame.sample_rate = rate
        target.mux(stream.encode(frame))  # pyright: ignore[reportUnknownMemberType]
        target.mux(stream.encode(None))  # pyright: ignore[reportUnknownMemberType]
    return out.getvalue()


WAV = sounds.file(sounds.sine(0.3), sounds.RATE, "WAV")
FLAC = sounds.file(sounds.sine(0.3), sounds.RATE, "FLAC")
MP3 = sounds.file(sounds.sine(0.3), sounds.RATE, "MP3")
OGG = sounds.file(sounds.sine(0.3), sounds.RATE, "OGG")
M4A = recorded("mp4", "aac", sounds.sine(0.3, 440, 48_000), 48_000)
