"""The audio of a call in RTP and RTCP: one stream each way, and truthful reports about both (RFC 3550)."""

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

from realtime.webrtc.codec_facts import FACTS
from realtime.webrtc.dtls import SecureLink
from realtime.webrtc.offer import Offer
from realtime.webrtc.packets import AudioPacket, Outgoing, PacketSource
from realtime.webrtc.rtp import Reception, RtpPacket, read_rtp, write_rtp

REPORT_INTERVAL_S = 1.0
"""On average; each is drawn from half to one and a half of it, so that reports of many calls do not fall together."""
SILENT_S = 0.5
"""A stream from which nothing has come for so long makes room for another one at once."""
TAKES_OVER_PACKETS = 5
"""Of another stream, and none of the first between them: a new one began without a goodbye. They wait until then."""
UNTOLD_LOSS = 0.1
"""What is expected of a client that has not reported yet."""
LOSS_REPORTS = 4
"""What was lost is a mean over about so many reports."""
NTP_EPOCH_S = 2_208_988_800
_CNAME = 1


class _SenderReport(NamedTuple):
    """When the client's last one arrived, and the middle of its NTP time stamp, which it wants back."""

    middle: int
    arrived_s: float


class _Arrived(NamedTuple):
    packet: RtpPacket
    at_s: float


class AudioStreams:
    """`receive` and `receive_report` take decrypted packets; `on_packet` gets the audio of the first stream that comes."""

    def __init__(self, offer: Offer, on_packet: Callable[[AudioPacket], None]) -> None:
        self.ssrc = secrets.randbits(32)
        self.cname = secrets.token_hex(8)
        self._payload_type = offer.sound.payload_type
        self._comfort_noise = offer.sound.comfort_noise
        self._clock_hz = FACTS[offer.sound.codec].clock_hz
        self._sends = offer.direction in ("sendrecv", "sendonly")
        self._receives = offer.direction in ("sendrecv", "recvonly")
        self._on_packet = on_packet
        self._remote_ssrc: int | None = None
        self._stream = 0
        self._heard_s = 0.0
        self._newcomers: list[_Arrived] = []
        self._reception = Reception(self._clock_hz)
        self.reported_loss = UNTOLD_LOSS
        """Part of what was sent lately that did not reach the client, 0 to 1, as it reports."""
        self._sender_report: _SenderReport | None = None
        # the lower half: a first wrap that is lost would confuse SRTP's roll-over counter
        self._sequence = secrets.randbits(15)
        self._origin = secrets.randbits(32)
        self._sent_packets = 0
        self._sent_bytes = 0
        self._last_sent: tuple[int, float] = (0, 0.0)

    def receive(self, data: bytes) -> None:
        """A second stream beside the first is left out. What is numbered along with the sound and is none (telephone events) is
        passed on empty."""
        packet, now_s = read_rtp(data), time.monotonic()
        if packet is None or not self._receives:
            return
        if packet.ssrc == self._remote_ssrc:
            self._newcomers.clear()
            self._hear(packet, now_s)
        elif packet.payload_type == self._payload_type:
            self._consider(packet, now_s)

    def _consider(self, packet: RtpPacket, now_s: float) -> None:
        """Of another stream than the one that is heard."""
        if self._newcomers and self._newcomers[-1].packet.ssrc != packet.ssrc:
            self._newcomers.clear()
        self._newcomers.append(_Arrived(packet, now_s))
        there_is_room = self._remote_ssrc is None or now_s - self._heard_s >= SILENT_S
        if there_is_room or len(self._newcomers) == TAKES_OVER_PACKETS:
            self._begin(packet.ssrc)
            for newcomer in self._newcomers:
                self._hear(*newcomer)
            self._newcomers.clear()

    def _hear(self, packet: RtpPacket, arrived_s: float) -> None:
        self._heard_s = arrived_s
        self._reception.add(packet.audio.sequence, packet.audio.timestamp, arrived_s)
        self._on_packet(self._told(packet))

    def _told(self, packet: RtpPacket) -> AudioPacket:
        if packet.payload_type == self._payload_type:
            return packet.audio._replace(stream=self._stream)
        comfort = packet.payload_type == self._comfort_noise
        return packet.audio._replace(stream=self._stream, payload=b"", comfort_noise=comfort)

    def _begin(self, ssrc: int) -> None:
        self._remote_ssrc = ssrc
        self._stream += 1
        self._reception = Reception(self._clock_hz)
        self._sender_report = None

    def receive_report(self, data: bytes) -> None:
        try:
            packets = RtcpPacket.parse(data)
        except ValueError:
            return
        for packet in packets:
            if isinstance(packet, RtcpRrPacket | RtcpSrPacket):
                self._note_loss(packet.reports)
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

    def _note_loss(self, reports: list[RtcpReceiverInfo]) -> None:
        for report in reports:
            if report.ssrc == self.ssrc:
                self.reported_loss += (report.fraction_lost / 256 - self.reported_loss) / LOSS_REPORTS

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
            rtp_timestamp=(timestamp + int((now_s - sent_s) * self._clock_hz)) & 0xFFFF_FFFF,
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
