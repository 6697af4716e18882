"""What a packet tells undecoded, against libopus."""

import ctypes

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import recordings
from fakes import foreign_opus, sounds
from realtime.media.call_codecs import Voice
from realtime.media.opus import NotOpus, OpusDecoder, library_path
from realtime.media.opus_frames import OPUS_PAUSE, OPUS_SILENCE, has_copy, is_pause, packet_ticks
from realtime.media.opus_stream import OpusSpeaker

LIBOPUS = ctypes.CDLL(library_path())
LIBOPUS.opus_packet_has_lbrr.argtypes = [ctypes.c_char_p, ctypes.c_int32]


@given(st.binary(min_size=1, max_size=40))
@example(b"\xff\x06")
@example(b"\xff\x07")
def test_a_packet_is_as_long_as_its_header_says(packet: bytes) -> None:
    try:
        pcm = OpusDecoder().decode(packet)
    except NotOpus:
        return
    assert packet_ticks(packet) == len(pcm)  # 24,000 samples of two bytes


@pytest.mark.parametrize("packet", [b"", b"\xff", b"\xff\x00", b"\xff\x07"])
def test_what_holds_no_sound_or_too_much_is_none(packet: bytes) -> None:
    assert packet_ticks(packet) == 0


@pytest.mark.parametrize(("expected_loss_percent", "copies"), [(0, False), (10, True), (30, True)])
def test_copies_are_seen_where_libopus_sees_them(expected_loss_percent: int, copies: bool) -> None:
    speaker = OpusSpeaker(Voice(expected_loss_percent=expected_loss_percent))
    packets = list(speaker.speak(recordings.read_sentences()[0].pcm()))
    seen = [has_copy(packet) for packet in packets]
    assert seen == [LIBOPUS.opus_packet_has_lbrr(packet, len(packet)) == 1 for packet in packets]
    assert (sum(seen) > len(seen) / 2) is copies
    assert any(seen) is copies


@given(st.sampled_from([toc for toc in range(256) if not toc & 3]), st.binary(min_size=1, max_size=4))
def test_copies_are_seen_in_any_packet_of_one_frame(toc: int, rest: bytes) -> None:
    packet = bytes([toc]) + rest
    assert has_copy(packet) == (LIBOPUS.opus_packet_has_lbrr(packet, len(packet)) == 1)


def test_a_pause_is_known_by_its_packet() -> None:
    speech = foreign_opus.packets(sounds.sine(0.4, 440, 48_000))
    assert not any(map(is_pause, [*speech, OPUS_SILENCE, b""]))
    assert is_pause(OPUS_PAUSE)
    assert is_pause(b"\x08\x00")
