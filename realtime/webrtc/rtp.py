"""RTP packets (RFC 3550): their header, and what a receiver reports about a stream of them. Pure, no clock of its own."""

import struct
from typing import NamedTuple

from realtime.webrtc.packets import AudioPacket

_FIXED = struct.Struct("!BBHLL")
_MAX_DROPOUT = 3000
_MAX_MISORDER = 100
"""Steps of the sequence number beyond which a stream has begun anew (RFC 3550, A.1)."""
_LOST_LIMIT = (1 << 23) - 1


class RtpPacket(NamedTuple):
    ssrc: int
    payload_type: int
    audio: AudioPacket


def read_rtp(data: bytes) -> RtpPacket | None:
    """None for what is no whole packet of version 2. Header extensions, contributing sources and padding are stripped."""
    if len(data) < _FIXED.size:
        return None
    first, second, sequence, timestamp, ssrc = _FIXED.unpack_from(data)
    start, end = _FIXED.size + 4 * (first & 0x0F), len(data)
    if first & 0x10:
        if start + 4 > end:
            return None
        start += 4 + 4 * int.from_bytes(data[start + 2 : start + 4])
    if first & 0x20:
        end -= data[-1]
    if first >> 6 != 2 or start > end or (first & 0x20 and data[-1] == 0):
        return None
    return RtpPacket(ssrc, second & 0x7F, AudioPacket(sequence, timestamp, data[start:end]))


def write_rtp(ssrc: int, payload_type: int, *, marker: bool, audio: AudioPacket) -> bytes:
    second = (marker << 7) | payload_type
    return _FIXED.pack(0x80, second, audio.sequence, audio.timestamp & 0xFFFF_FFFF, ssrc) + audio.payload


class ReceptionReport(NamedTuple):
    """As in a report block (RFC 3550, 6.4.1): a fraction of 256, packets, a sequence number of 32 bits, time stamp units."""

    fraction_lost: int
    packets_lost: int
    highest_sequence: int
    jitter: int


class Reception:
    """What was received of one stream (RFC 3550, A.1, A.3, A.8). `clock_hz`: of its time stamps."""

    def __init__(self, clock_hz: int) -> None:
        self._clock_hz = clock_hz
        self._first: int | None = None
        self._highest = 0
        self._received = 0
        self._expected_before = 0
        self._received_before = 0
        self._transit: int | None = None
        self._jitter = 0.0

    def add(self, sequence: int, timestamp: int, arrived_s: float) -> None:
        """`arrived_s`: of any clock that only grows."""
        step = (sequence - self._highest) & 0xFFFF
        if self._first is None or _MAX_DROPOUT <= step <= 0x10000 - _MAX_MISORDER:
            self._begin(sequence)
        elif step < _MAX_DROPOUT:
            self._highest += step
        self._received += 1
        self._add_transit(timestamp, arrived_s)

    def report(self) -> ReceptionReport:
        """The fraction is that of the time since the last report."""
        expected = 0 if self._first is None else self._highest - self._first + 1
        expected_now, received_now = expected - self._expected_before, self._received - self._received_before
        self._expected_before, self._received_before = expected, self._received
        lost_now = expected_now - received_now
        fraction = min(255, (lost_now << 8) // expected_now) if expected_now > 0 and lost_now > 0 else 0
        lost = max(-_LOST_LIMIT - 1, min(expected - self._received, _LOST_LIMIT))
        return ReceptionReport(fraction, lost, self._highest & 0xFFFF_FFFF, int(self._jitter))

    def _begin(self, sequence: int) -> None:
        self._first = self._highest = sequence
        self._received = self._expected_before = self._received_before = 0
        self._transit = None

    def _add_transit(self, timestamp: int, arrived_s: float) -> None:
        transit = (int(arrived_s * self._clock_hz) - timestamp) & 0xFFFF_FFFF
        if self._transit is not None:
            change = (transit - self._transit + 0x8000_0000 & 0xFFFF_FFFF) - 0x8000_0000
            self._jitter += (abs(change) - self._jitter) / 16
        self._transit = transit
