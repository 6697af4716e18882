"""What anybody may send to a call, as functions of bytes: each returns whatever it is given, or fails for a fault of ours."""

import asyncio
import contextlib
from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

from fakes.offers import CHROMIUM
from realtime.errors import Refusal
from realtime.media.opus import NotOpus, OpusDecoder
from realtime.webrtc.audio_streams import AudioStreams
from realtime.webrtc.codec_facts import FACTS
from realtime.webrtc.ice import IceLink
from realtime.webrtc.jitter_buffer import MAX_GIVEN_UP, MAX_HELD, JitterBuffer
from realtime.webrtc.offer import read_offer
from realtime.webrtc.packets import AudioPacket, Lost, Silent, Sound
from realtime.webrtc.settings import WebRtcSettings
from realtime.webrtc.timeline import MOST_FILLED_AHEAD_S
from realtime.webrtc.trickle import read_fragment

# pyright: reportPrivateUsage=false

Target: TypeAlias = Callable[[bytes], None]
OFFER = read_offer(CHROMIUM)
PACKETS_PER_S = 50
RATE = 24_000
LONGEST_PACKET_S = 0.12
"""Of Opus."""
SOMEBODY = ("127.0.0.1", 9)


def offer(data: bytes) -> None:
    with contextlib.suppress(Refusal):
        read_offer(data.decode(errors="replace"))


def fragment(data: bytes) -> None:
    with contextlib.suppress(Refusal):
        read_fragment(data)


def sound(data: bytes) -> None:
    """Decrypted RTP packets, one each 20 ms. What is held is bounded, and so is what time stamps can claim."""
    buffer = JitterBuffer(FACTS["opus"])
    now_s, given = 0.0, list[Sound]()

    def arrived(packet: AudioPacket) -> None:
        given.extend(buffer.add(packet, now_s))

    streams = AudioStreams(OFFER, arrived)
    count = 0
    for packet in pieces(data):
        streams.receive(packet)
        count += 1
        now_s = count / PACKETS_PER_S
        if buffer.due_s is not None and buffer.due_s <= now_s:
            given.extend(buffer.wake(now_s))
        assert len(buffer._held) <= MAX_HELD + 1
        assert len(buffer._given_up) <= MAX_GIVEN_UP
    gaps_s = sum(each.samples for each in given if isinstance(each, Lost | Silent)) / RATE
    assert gaps_s <= now_s + MOST_FILLED_AHEAD_S + LONGEST_PACKET_S
    assert sum(isinstance(each, bytes) for each in given) <= count


def report(data: bytes) -> None:
    """A decrypted RTCP packet."""
    streams = AudioStreams(OFFER, lambda packet: None)
    streams.receive(rtp(1, 1, b"\xf8"))
    streams.receive_report(data)
    assert 0 <= streams.reported_loss <= 1


def opus(data: bytes) -> None:
    """Payloads, of which some are said to have been lost. What it decodes is never longer than Opus allows."""
    decoder = OpusDecoder()
    for payload in pieces(data):
        with contextlib.suppress(NotOpus):
            pcm = decoder.decode(payload)
            assert len(pcm) <= 2 * RATE * LONGEST_PACKET_S


def datagram(data: bytes) -> None:
    """From a stranger to the UDP socket of a call that waits for its client: STUN, DTLS, RTP, anything."""

    async def receive() -> None:
        ice = IceLink(WebRtcSettings(), OFFER, lambda: None)
        await ice.gather_candidates()
        try:
            for piece in pieces(data):
                ice._protocols[0].datagram_received(piece, SOMEBODY)
            await asyncio.sleep(0)
        finally:
            await ice.close()

    asyncio.run(receive())


TARGETS: Mapping[str, Target] = {
    "offer": offer,
    "fragment": fragment,
    "sound": sound,
    "report": report,
    "opus": opus,
    "datagram": datagram,
}


def pieces(data: bytes) -> Iterator[bytes]:
    """Two bytes tell how long each is."""
    while len(data) >= 2:
        size = int.from_bytes(data[:2], "big") % 1600
        yield data[2 : 2 + size]
        data = data[2 + size :]


def joined(*parts: bytes) -> bytes:
    """The opposite of `pieces`."""
    return b"".join(len(part).to_bytes(2, "big") + part for part in parts)


def rtp(sequence: int, timestamp: int, payload: bytes, payload_type: int = 111, ssrc: int = 7) -> bytes:
    header = bytes([0x80, payload_type]) + sequence.to_bytes(2, "big") + timestamp.to_bytes(4, "big") + ssrc.to_bytes(4, "big")
    return header + payload


def rtcp(count: int, kind: int, words: int, body: bytes) -> bytes:
    """`words`: how long it says it is."""
    return bytes([0x80 | count, kind]) + words.to_bytes(2, "big") + body
