"""What a client sends that means no good, over the connection of an RtcClient that is in a call."""

import contextlib
from collections.abc import Sequence
from typing import Any, cast

import msgspec
import pylibsrtp
from aiortc.rtcsctptransport import Chunk, DataChunk, serialize_packet
from hypothesis import strategies as st

from fakes.rtc_client import RtcClient
from realtime.webrtc.packets import AudioPacket
from realtime.webrtc.rtp import write_rtp

# pyright: reportPrivateUsage=false

LONGEST_BYTES = 1_200


class Raw(msgspec.Struct, frozen=True):
    """A datagram as it is: garbage that passes for STUN, DTLS, RTP or nothing."""

    datagram: bytes


class Encrypted(msgspec.Struct, frozen=True):
    """An RTP packet whose header is right, whatever it says."""

    sequence: int
    timestamp: int
    payload_type: int
    ssrc: int
    payload: bytes


class Again(msgspec.Struct, frozen=True):
    """An encrypted packet that was sent before: a replay."""

    place: int


class Report(msgspec.Struct, frozen=True):
    """An RTCP packet: kinds from 200 on are known."""

    count: int
    kind: int
    body: bytes


class Association(msgspec.Struct, frozen=True):
    """An SCTP packet with one chunk, under the right tag and check sum."""

    kind: int
    flags: int
    body: bytes


class Piece(msgspec.Struct, frozen=True):
    """A piece of a message on a data channel, whose protocol tells what it is: text, bytes, or an order to open or close."""

    flags: int
    ahead: int
    stream: int
    protocol: int
    data: bytes


class Message(msgspec.Struct, frozen=True):
    text: str | bytes


Mischief = Raw | Encrypted | Again | Report | Association | Piece | Message

_bytes = st.binary(max_size=LONGEST_BYTES)
_short = st.binary(max_size=60)
_raw = st.builds(Raw, _bytes.filter(bool))
_encrypted = st.builds(
    Encrypted,
    sequence=st.integers(0, 0xFFFF),
    timestamp=st.integers(0, 0xFFFF_FFFF),
    payload_type=st.sampled_from((96, 96, 96, 0, 8, 13, 110, 127)),
    ssrc=st.sampled_from((1, 2, 0xFFFF_FFFF)),
    payload=_bytes,
)
_report = st.builds(
    Report, count=st.integers(0, 31), kind=st.integers(200, 207), body=_short.map(lambda body: body[: len(body) & ~3])
)
_association = st.builds(Association, kind=st.integers(0, 255), flags=st.integers(0, 255), body=_short)
_order = st.builds(bytes.__add__, st.sampled_from((b"\x02", b"\x03\x00", b"\x03\x01", b"\x03\x82")), _short)
_piece = st.builds(
    Piece,
    flags=st.integers(0, 7),
    ahead=st.integers(0, 600),
    stream=st.integers(0, 70),
    protocol=st.sampled_from((50, 50, 51, 53, 56, 57, 0)),
    data=_order | _short,
)
_message = st.builds(Message, st.text(max_size=200) | _short)
mischief = _raw | _encrypted | st.builds(Again, st.integers(0, 100)) | _report | _association | _piece | _message


async def do(client: RtcClient, deeds: Sequence[Mischief]) -> None:
    """Nobody waits for anything in between. What the client's own SRTP refuses, as too old, is not sent."""
    sent: list[bytes] = []
    for deed in deeds:
        with contextlib.suppress(pylibsrtp.Error):
            await _do(client, deed, sent)


async def _do(client: RtcClient, deed: Mischief, sent: list[bytes]) -> None:
    transport = client._transport
    match deed:
        case Raw(datagram):
            await transport.transport._send(datagram)
        case Encrypted():
            sent.append(_protected(client, deed))
            await transport.transport._send(sent[-1])
        case Again(place) if sent:
            await transport.transport._send(sent[place % len(sent)])
        case Report(count, kind, body):
            await transport._send_rtp(bytes([0x80 | count, kind]) + (len(body) // 4).to_bytes(2, "big") + body)
        case Association(kind, flags, body):
            await _send_chunk(client, _chunk(kind, flags, body))
        case Piece():
            await _send_chunk(client, _piece_of_message(client, deed))
        case Message(text) if client.channel is not None and client.channel.readyState == "open":
            client.channel.send(text)
        case _:
            pass


def _protected(client: RtcClient, deed: Encrypted) -> bytes:
    audio = AudioPacket(deed.sequence, deed.timestamp, deed.payload)
    packet = write_rtp(deed.ssrc, deed.payload_type, marker=False, audio=audio)
    return client._transport._tx_srtp.protect(packet)


async def _send_chunk(client: RtcClient, chunk: Chunk) -> None:
    sctp = client.sctp
    tag = sctp._remote_verification_tag
    await client._transport._send_data(serialize_packet(sctp._local_port, cast(Any, sctp._remote_port), tag, chunk))


def _chunk(kind: int, flags: int, body: bytes) -> Chunk:
    chunk = Chunk(flags, body)
    chunk.type = kind
    return chunk


def _piece_of_message(client: RtcClient, deed: Piece) -> DataChunk:
    chunk = DataChunk(flags=deed.flags)
    chunk.tsn = (client.sctp._local_tsn + deed.ahead) & 0xFFFF_FFFF
    chunk.stream_id = deed.stream
    chunk.stream_seq = 0
    chunk.protocol = deed.protocol
    chunk.user_data = deed.data
    return chunk
