"""The binding to libopus: packets of every shape, and none."""

from functools import partial

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from fakes import foreign_opus, sounds
from realtime.media import opus
from realtime.media.opus import NotOpus, OpusDecoder, OpusEncoder, OpusError

MAX_BYTES = 24_000 * 120 // 1000 * 2
FRAME = sounds.sine(0.02).tobytes()


def samples(pcm: bytes) -> NDArray[np.int16]:
    return np.frombuffer(pcm, "<i2")


@pytest.mark.parametrize("application", ["voip", "lowdelay"])
@pytest.mark.parametrize("channels", [1, 2])
@pytest.mark.parametrize("frame_ms", [2.5, 5, 10, 20, 40, 60, 80, 100, 120])
def test_any_packet_gives_its_own_length_at_the_right_pitch(frame_ms: float, channels: int, application: str) -> None:
    packets = foreign_opus.packets(sounds.sine(1.2, 440, 48_000), frame_ms, channels, application)
    decoder = OpusDecoder()
    pieces = [samples(decoder.decode(packet)) for packet in packets]
    assert {len(piece) for piece in pieces} == {24 * frame_ms}
    heard = np.concatenate(pieces)
    assert len(heard) == 1.2 * 24_000
    assert sounds.pitch(heard[2_400:], 24_000) == pytest.approx(440, abs=1)
    assert np.abs(heard[4_800:-4_800]).max() == pytest.approx(13_107, rel=0.25)


def test_a_pause_that_is_not_transmitted_is_as_long_as_it_was() -> None:
    tone = sounds.sine(0.4, 440, 48_000)
    packets = foreign_opus.packets(np.concatenate([tone, np.zeros(48_000, np.int16), tone]), dtx=True)
    assert min(map(len, packets)) <= 3
    decoder = OpusDecoder()
    assert len(b"".join(map(decoder.decode, packets))) == 1.8 * 24_000 * 2


def test_a_packet_without_content_is_as_long_as_its_header_says() -> None:
    decoder = OpusDecoder()
    decoder.decode(OpusEncoder().encode(FRAME))
    for header, ms in ((0x68, 20), (0x18, 60), (0x80, 2.5)):
        assert len(decoder.decode(bytes([header]))) == 48 * ms


def test_other_rates_are_decoded_into() -> None:
    decoder = OpusDecoder(16_000)
    heard = samples(b"".join(map(decoder.decode, foreign_opus.packets(sounds.sine(1, 440, 48_000)))))
    assert len(heard) == 16_000
    assert sounds.pitch(heard, 16_000) == pytest.approx(440, abs=1)


@given(st.binary(max_size=1_500))
@example(b"")
@example(bytes([0xFF]))
@example(bytes([0x1B, 0x3F]) + bytes(100))
def test_garbage_gives_an_error_or_a_bounded_answer(garbage: bytes) -> None:
    decoder = OpusDecoder()
    for decode in (decoder.decode, partial(decoder.decode_fec, samples=2_880)):
        try:
            assert 0 < len(decode(garbage)) <= MAX_BYTES
        except NotOpus:
            continue
    assert len(decoder.decode(OpusEncoder().encode(FRAME))) == 960


@given(st.data())
def test_damage_never_does_more_than_refuse(data: st.DataObject) -> None:
    encoder, decoder = OpusEncoder(), OpusDecoder()
    for _ in range(4):
        packet = bytearray(encoder.encode(FRAME))
        for _ in range(data.draw(st.integers(0, 4))):
            packet[data.draw(st.integers(0, len(packet) - 1))] = data.draw(st.integers(0, 255))
        try:
            assert 0 < len(decoder.decode(bytes(packet[: data.draw(st.integers(1, len(packet)))]))) <= MAX_BYTES
        except NotOpus:
            continue


def test_a_damaged_packet_leaves_the_decoder_as_it_was() -> None:
    encoder = OpusEncoder()
    packets = [encoder.encode(FRAME) for _ in range(10)]
    undisturbed, disturbed = OpusDecoder(), OpusDecoder()
    for packet in packets:
        with pytest.raises(NotOpus, match="2 bytes that are no Opus packet"):
            disturbed.decode(b"\xff\x00")
        assert disturbed.decode(packet) == undisturbed.decode(packet)


@pytest.mark.parametrize("lost_samples", [0, -60, 479, 2_940])
def test_what_can_not_have_been_lost_is_refused(lost_samples: int) -> None:
    with pytest.raises(ValueError, match=f"a multiple of 60 up to 2880, got {lost_samples}"):
        OpusDecoder().conceal(lost_samples)
    with pytest.raises(ValueError, match="samples: expected"):
        OpusDecoder().decode_fec(OpusEncoder().encode(FRAME), lost_samples)


@pytest.mark.parametrize("size", [0, 959, 962])
def test_only_whole_frames_are_encoded(size: int) -> None:
    with pytest.raises(ValueError, match=f"pcm: expected 960 bytes, a frame of 20 ms; got {size}"):
        OpusEncoder().encode(bytes(size))


def test_a_rate_that_opus_does_not_know_is_refused() -> None:
    with pytest.raises(OpusError, match="its error -1"):
        OpusEncoder(22_050)
    with pytest.raises(OpusError):
        OpusDecoder(44_100)


def test_the_systems_library_stands_in_for_the_bundled_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opus, "find_spec", no_module)
    monkeypatch.setattr(opus.ctypes.util, "find_library", lambda _name: "libopus.so.0")  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]  as typed there
    assert opus.library_path() == "libopus.so.0"


def test_without_a_library_the_error_names_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opus, "find_spec", no_module)
    monkeypatch.setattr(opus.ctypes.util, "find_library", no_module)
    with pytest.raises(OpusError, match="install the Debian package libopus0"):
        opus.library_path()


def no_module(_name: str) -> None:
    return None
