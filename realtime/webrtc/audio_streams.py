"""The audio of a call in RTP and RTCP: one Opus stream each way, and truthful reports about both (RFC 3550)."""

import asyncio
import contextlib
import random
import secrets
import time
from collections.abc import Callable
from typing import NamedTuple

from aiortc.rtp import (
    AnyRtcpPacket,
    RtcpByePacket,
    RtcpPacket,
    RtcpReceiverInfo,
    RtcpRrPacket,
    RtcpSdesPacket,
    RtcpSenderInfo,
    RtcpSourceInfo,
    RtcpSrPacket,
)

from realtime.media.opus_frames import CLOCK_HZ
from realtime.webrtc.dtls import SecureLink
from realtime.webrtc.offer import Offer
from realtime.webrtc.packets import AudioPacket, Outgoing, PacketSource
from realtime.webrtc.rtp import Reception, read_rtp, write_rtp

REPORT_INTERVAL_S = 1.0
"""On average; each is drawn from half to one and a half of it, so that reports of many calls do not fall together."""
NTP_EPOCH_S = 2_208_988_800
_CNAME = 1


class _SenderReport(NamedTuple):
    """When the client's last one arrived, and the middle of its NTP time stamp, which it wants back."""

    middle: int
    arrived_s: float


class AudioStreams:
    """`receive` and `receive_report` take decrypted packets; `on_packet` gets the audio of the first stream that comes."""

    def __init__(self, offer: Offer, on_packet: Callable[[AudioPacket], None]) -> None:
        self.ssrc = secrets.randbits(32)
        self.cname = secrets.token_hex(8)
        self._payload_type = offer.payload_type
        self._sends = offer.direction in ("sendrecv", "sendonly")
        self._receives = offer.direction in ("sendrecv", "recvonly")
        self._on_packet = on_packet
        self._remote_ssrc: int | None = None
        self._reception = Reception()
        self._sender_report: _SenderReport | None = None
        # the lower half: a first wrap that is lost would confuse SRTP's roll-over counter
        self._sequence = secrets.randbits(15)
        self._origin = secrets.randbits(32)
        self._sent_packets = 0
        self._sent_bytes = 0
        self._last_sent: tuple[int, float] = (0, 0.0)

    def receive(self, data: bytes) -> None:
        """Anything but Opus is left out: comfort noise, telephone events. So is a second stream beside the first."""
        packet = read_rtp(data)
        if packet is None or packet.payload_type != self._payload_type or not self._receives:
            return
        if self._remote_ssrc is None:
            self._remote_ssrc = packet.ssrc
            self._reception = Reception()
        if packet.ssrc == self._remote_ssrc:
            self._reception.add(packet.audio.sequence, packet.audio.timestamp, time.monotonic())
            self._on_packet(packet.audio)

    def receive_report(self, data: bytes) -> None:
        try:
            packets = RtcpPacket.parse(data)
        except ValueError:
            return
        for packet in packets:
            match packet:
                case RtcpSrPacket(ssrc=ssrc) if ssrc == self._remote_ssrc:
                    middle = packet.sender_info.ntp_timestamp >> 16 & 0xFFFF_FFFF
                    self._sender_report = _SenderReport(middle, time.monotonic())
                case RtcpByePacket(sources=sources) if self._remote_ssrc in sources:
                    self._remote_ssrc = self._sender_report = None  # the next stream is the one to hear
                case _:
                    pass

    async def send(self, source: PacketSource, link: SecureLink) -> None:
        """For ever. Nothing is sent to a client that does not listen, but the source is kept flowing. Raises ConnectionError."""
        while True:
            outgoing = await source.next()
            if self._sends:
                await link.send(self._packet(outgoing))

    async def report(self, link: SecureLink) -> None:
        """For ever, and a farewell. Raises ConnectionError."""
        try:
            while True:
                await asyncio.sleep(REPORT_INTERVAL_S * (0.5 + random.random()))
                await link.send(b"".join(bytes(packet) for packet in self._reports()))
        finally:
            with contextlib.suppress(ConnectionError):
                await link.send(bytes(RtcpByePacket([self.ssrc])))

    def _packet(self, outgoing: Outgoing) -> bytes:
        audio = AudioPacket(self._sequence, (self._origin + outgoing.timestamp) & 0xFFFF_FFFF, outgoing.payload)
        data = write_rtp(self.ssrc, self._payload_type, marker=self._sent_packets == 0, audio=audio)
        self._sequence = (self._sequence + 1) & 0xFFFF
        self._sent_packets += 1
        self._sent_bytes += len(outgoing.payload)
        self._last_sent = (audio.timestamp, time.time())
        return data

    def _reports(self) -> list[AnyRtcpPacket]:
        source = RtcpSdesPacket([RtcpSourceInfo(self.ssrc, [(_CNAME, self.cname.encode())])])
        if self._sent_packets == 0:
            return [RtcpRrPacket(self.ssrc, self._heard()), source]
        return [RtcpSrPacket(self.ssrc, self._sender_info(), self._heard()), source]

    def _sender_info(self) -> RtcpSenderInfo:
        """The time stamp that a packet would have that were sent now."""
        timestamp, sent_s = self._last_sent
        now_s = time.time()
        return RtcpSenderInfo(
            ntp_timestamp=int((now_s + NTP_EPOCH_S) * (1 << 32)),
            rtp_timestamp=(timestamp + int((now_s - sent_s) * CLOCK_HZ)) & 0xFFFF_FFFF,
            packet_count=self._sent_packets & 0xFFFF_FFFF,
            octet_count=self._sent_bytes & 0xFFFF_FFFF,
        )

    def _heard(self) -> list[RtcpReceiverInfo]:
        if self._remote_ssrc is None:
            return []
        seen = self._reception.report()
        last = self._sender_report
        return [
            RtcpReceiverInfo(
                ssrc=self._remote_ssrc,
                fraction_lost=seen.fraction_lost,
                packets_lost=seen.packets_lost,
                highest_sequence=seen.highest_sequence,
                jitter=seen.jitter,
                lsr=0 if last is None else last.middle,
                dlsr=0 if last is None else min(int((time.monotonic() - last.arrived_s) * 65_536), 0xFFFF_FFFF),
            )
        ]
