"""RTP headers, and the figures of a receiver report against their definition in RFC 3550."""

import pytest
from aiortc.rtp import RtpPacket as OfAiortc
from hypothesis import given
from hypothesis import strategies as st

from realtime.media.opus_frames import CLOCK_HZ
from realtime.webrtc.packets import AudioPacket
from realtime.webrtc.rtp import Reception, read_rtp, write_rtp

SLOT = 960
SLOT_S = 0.02


def received(*sequences: int, reception: Reception | None = None, late_s: float = 0.0) -> Reception:
    """One packet a slot; each second of them `late_s` late."""
    reception = reception or Reception(CLOCK_HZ)
    for place, sequence in enumerate(sequences):
        reception.add(sequence & 0xFFFF, SLOT * sequence & 0xFFFF_FFFF, sequence * SLOT_S + late_s * (place % 2))
    return reception


def test_a_packet_is_read_as_it_was_written() -> None:
    audio = AudioPacket(65_535, 0xFFFF_FFFF, b"opus")
    packet = read_rtp(write_rtp(7, 111, marker=True, audio=audio))
    assert packet is not None
    assert packet == (7, 111, audio)


def test_extensions_sources_and_padding_are_stripped() -> None:
    header = b"\xb2\x6f\x00\x01\x00\x00\x00\x02\x00\x00\x00\x03" + bytes(8) + b"\xbe\xde\x00\x01\x10\xff\x00\x00"
    packet = read_rtp(header + b"opus" + b"\x00\x00\x03")
    assert packet is not None
    assert packet == (3, 111, AudioPacket(1, 2, b"opus"))


@given(st.binary(max_size=80))
def test_any_bytes_are_read_or_not_a_packet(data: bytes) -> None:
    packet = read_rtp(data)
    assert packet is None or len(packet.audio.payload) <= len(data) - 12


@given(st.binary(max_size=80))
def test_packets_are_those_that_aiortc_reads(tail: bytes) -> None:
    data = b"\x80\x6f" + tail
    try:
        expected = OfAiortc.parse(data)
    except ValueError:
        assert read_rtp(data) is None
        return
    packet = read_rtp(data)
    assert packet is not None
    assert packet.audio[:3] == (expected.sequence_number, expected.timestamp, expected.payload)


def test_nothing_is_lost_of_an_unbroken_stream() -> None:
    assert received(*range(100)).report() == (0, 0, 99, 0)


def test_the_fraction_lost_is_that_since_the_last_report() -> None:
    reception = received(0, 1, 2, 4)
    assert reception.report()[:2] == (256 // 5, 1)
    received(*range(5, 10), reception=reception)
    assert reception.report()[:2] == (0, 1)


def test_a_late_packet_is_not_lost_and_a_double_one_counts_twice() -> None:
    assert received(0, 1, 3, 2).report()[:2] == (0, 0)
    assert received(0, 1, 1, 2).report()[:2] == (0, -1)


def test_the_highest_sequence_number_goes_on_beyond_16_bits() -> None:
    """aiortc's does not: then this class can go."""
    reception = received(*range(65_530, 65_541))
    assert reception.report().highest_sequence == 65_540
    assert reception.report().packets_lost == 0


def test_a_stream_that_begins_anew_is_counted_anew() -> None:
    reception = received(*range(10))
    received(*range(20_000, 20_010), reception=reception)
    assert reception.report()[:3] == (0, 0, 20_009)


@pytest.mark.parametrize("first", [0, (1 << 32) // SLOT - 50])
def test_jitter_tends_to_the_mean_change_of_the_delay(first: int) -> None:
    """Also where the time stamps wrap."""
    assert received(*range(first, first + 200), late_s=0.005).report().jitter == pytest.approx(0.005 * CLOCK_HZ, abs=2)


def test_before_anything_came_there_is_nothing_to_say() -> None:
    assert Reception(CLOCK_HZ).report() == (0, 0, 0, 0)
