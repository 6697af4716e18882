"""The data channel `oai-events`: what is said on it arrives, and no client can make this server hold much or fall over."""

import asyncio
import struct

import pytest
from aiortc import RTCSessionDescription
from aiortc.rtcsctptransport import (
    SCTP_DATA_FIRST_FRAG,
    SCTP_DATA_LAST_FRAG,
    WEBRTC_DCEP,
    WEBRTC_STRING,
    DataChunk,
    RTCSctpTransport,
)

from fakes.peers import Heard, open_peer
from fakes.rtc_client import RtcClient
from realtime.webrtc.channel import MAX_BUFFERED_BYTES, MAX_CHUNKS_HELD, MAX_STREAMS
from realtime.webrtc.offer import read_offer
from realtime.webrtc.peer import ChannelClosed, MessageTooLarge, Peer

# pyright: reportPrivateUsage=false

WHOLE = SCTP_DATA_FIRST_FRAG | SCTP_DATA_LAST_FRAG
SMALLEST_MTU_BYTES = 1280
"""Of IPv6 (RFC 8200); 48 of it are headers of IP and UDP."""


async def test_text_goes_both_ways() -> None:
    async with open_peer() as (peer, _, heard), RtcClient() as client:
        await client.connect(peer)
        await peer.send("grüß dich".encode())
        client.send("grüß Gott")
        assert await client.message() == "grüß dich"
        await heard.until(lambda: heard.messages == ["grüß Gott"])


async def test_what_is_sent_before_the_channel_is_open_waits() -> None:
    async with open_peer() as (peer, _, heard), RtcClient(early=["one", "two"]) as client:
        answer = await peer.answer(read_offer(await client.offer()))
        sending = asyncio.create_task(peer.send(b"early"))
        await client.accept(answer)
        await sending
        assert await client.message() == "early"
        await heard.until(lambda: heard.messages == ["one", "two"])


async def test_other_channels_are_left_alone() -> None:
    async with open_peer() as (peer, _, heard), RtcClient(label="chat", early=["not for us"]) as client:
        await client.connect(peer)
        events = client.connection.createDataChannel("oai-events")
        events.on("open", lambda: events.send("for us"))
        await peer.channel_open.wait()
        await heard.until(lambda: heard.messages == ["for us"])


async def test_without_a_channel_nothing_can_be_sent() -> None:
    async with open_peer() as (peer, _, _), RtcClient(channel=False) as client:
        await client.connect(peer)
        assert not peer.has_channel
        with pytest.raises(ChannelClosed):
            await peer.send(b"anybody?")


@pytest.mark.parametrize("setup", ["active", "passive"])
async def test_a_long_event_fits_through_the_narrowest_path(setup: str) -> None:
    """Both ways, and no datagram of it is longer than the smallest MTU allows. Those of either handshake are not either."""
    event = "é" * 30_000
    async with open_peer() as (peer, _, heard), RtcClient() as client:
        offer = (await client.offer()).replace("a=setup:actpass", f"a=setup:{setup}")
        await client.accept(await peer.answer(read_offer(offer)))
        await peer.send(event.encode())
        await client.opened.wait()
        client.send(event)
        assert await client.message() == event
        await heard.until(lambda: heard.messages == [event])
        assert max(client.sizes) <= SMALLEST_MTU_BYTES - 48


async def test_an_event_longer_than_the_client_takes_is_refused() -> None:
    async with open_peer() as (peer, _, _), RtcClient() as client:
        await client.connect(peer)
        with pytest.raises(MessageTooLarge) as caught:
            await peer.send(b"x" * 300_000)
        assert (caught.value.size, caught.value.limit) == (300_000, 262_144)
        await peer.send(b"the next one")
        assert await client.message() == "the next one"


async def test_a_message_longer_than_we_take_is_delivered_all_the_same() -> None:
    async with open_peer() as (peer, _, heard), RtcClient() as client:
        await client.connect(peer)
        client.sctp._remote_max_message_size = 0  # a client that ignores our limit
        client.send("x" * 300_000)
        await heard.until(lambda: len(heard.messages) == 1)
        assert len(heard.messages[0]) == 300_000


async def test_sending_waits_for_a_client_that_takes_nothing() -> None:
    async with open_peer() as (peer, _, _), RtcClient() as client:
        await client.connect(peer)
        deaf = client.sctp._handle_data
        client.sctp._handle_data = _ignore  # acknowledges nothing
        sending = asyncio.create_task(_send_many(peer, 20))
        for _ in range(1000):
            await asyncio.sleep(0)
        assert not sending.done()
        client.sctp._handle_data = deaf
        await sending
        for _ in range(20):
            assert len(await client.message()) == MAX_BUFFERED_BYTES // 4


async def test_sending_ends_with_the_channel() -> None:
    async with open_peer() as (peer, _, _), RtcClient() as client:
        await client.connect(peer)
        client.sctp._handle_data = _ignore
        sending = asyncio.create_task(_send_many(peer, 20))
        await peer.close()
        with pytest.raises(ChannelClosed):
            await sending


async def test_the_client_closes_its_channel_and_goes_on_speaking() -> None:
    async with open_peer() as (peer, _, heard), RtcClient() as client:
        await client.connect(peer)
        assert client.channel is not None
        closed = asyncio.Event()
        client.channel.on("close", closed.set)
        client.channel.close()
        await closed.wait()
        with pytest.raises(ChannelClosed):
            await peer.send(b"too late")
        await _still_speaks(heard)


@pytest.mark.parametrize("size", [1, 1100])
async def test_pieces_without_an_end_end_the_channel_and_not_the_call(size: int) -> None:
    async with open_peer() as (peer, _, heard), RtcClient() as client:
        await client.connect(peer)
        closed = asyncio.Event()
        assert client.channel is not None
        client.channel.on("close", closed.set)
        flood = asyncio.create_task(_flood(client.sctp, size))
        await closed.wait()
        flood.cancel()
        with pytest.raises(ChannelClosed):
            await peer.send(b"too late")
        await _still_speaks(heard)


async def test_streams_beyond_the_announced_are_not_kept() -> None:
    async with open_peer() as (peer, _, heard), RtcClient() as client:
        await client.connect(peer)
        await _send_chunk(client.sctp, stream=MAX_STREAMS, protocol=WEBRTC_STRING, data=b"lost", flags=WHOLE)
        client.sctp._local_tsn -= 1  # as if it had not been sent: it is not acknowledged
        client.send("kept")
        await heard.until(lambda: heard.messages == ["kept"])


@pytest.mark.parametrize(
    ("protocol", "data"),
    [
        (WEBRTC_STRING, b"\xff\xfe not text"),
        (WEBRTC_DCEP, struct.pack("!BBHLHH", 3, 0, 0, 0, 4, 0) + b"twice"),
        (WEBRTC_DCEP, b"\x03"),
    ],
)
async def test_a_malformed_message_does_not_end_the_call(protocol: int, data: bytes) -> None:
    async with open_peer() as (peer, _, heard), RtcClient() as client:
        await client.connect(peer)
        await _send_chunk(client.sctp, stream=1, protocol=protocol, data=data, flags=WHOLE)
        await _still_speaks(heard)
        assert not peer.closed.is_set()


class TestStillNeeded:
    """Weaknesses of aiortc's association that `channel` mends. When one of these fails, its mending can go."""

    @pytest.mark.parametrize(
        "malformed", [(WEBRTC_STRING, b"\xff\xfe not text"), (WEBRTC_DCEP, struct.pack("!BBHLHH", 3, 0, 0, 0, 4, 0) + b"twice")]
    )
    async def test_a_malformed_message_ends_a_stock_call(self, malformed: tuple[int, bytes]) -> None:
        async with RtcClient() as one, RtcClient(channel=False) as two:
            await _connect_stock(one, two)
            protocol, data = malformed
            await _send_chunk(one.sctp, stream=1, protocol=protocol, data=data, flags=WHOLE)
            await two.closed.wait()

    async def test_pieces_are_kept_beyond_the_window_and_on_any_stream(self) -> None:
        async with RtcClient() as client:
            client.sctp._last_received_tsn = 0
            for number in range(1, MAX_CHUNKS_HELD + 2):
                piece = DataChunk(SCTP_DATA_FIRST_FRAG if number == 1 else 0)
                piece.tsn, piece.stream_id, piece.user_data = number, MAX_STREAMS, b"x"
                await client.sctp._receive_data_chunk(piece)
            assert len(client.sctp._inbound_streams[MAX_STREAMS].reassembly) == MAX_CHUNKS_HELD + 1


async def _connect_stock(one: RtcClient, two: RtcClient) -> None:
    """Two clients, without a peer of ours."""
    await two.connection.setRemoteDescription(RTCSessionDescription(await one.offer(), "offer"))
    await two.connection.setLocalDescription(await two.connection.createAnswer())
    await one.accept(two.connection.localDescription.sdp)
    await one.opened.wait()


async def _ignore(data: bytes) -> None:
    pass


async def _send_many(peer: Peer, count: int) -> None:
    for _ in range(count):
        await peer.send(b"x" * (MAX_BUFFERED_BYTES // 4))


async def _send_chunk(sctp: RTCSctpTransport, stream: int, protocol: int, data: bytes, flags: int) -> None:
    chunk = DataChunk(flags)
    chunk.tsn, chunk.stream_id, chunk.protocol, chunk.user_data = sctp._local_tsn, stream, protocol, data
    chunk.stream_seq = sctp._outbound_stream_seq.get(stream, 0)
    sctp._local_tsn = (sctp._local_tsn + 1) & 0xFFFF_FFFF
    if flags & SCTP_DATA_LAST_FRAG:
        sctp._outbound_stream_seq[stream] = chunk.stream_seq + 1 & 0xFFFF
    await sctp._send_chunk(chunk)


async def _flood(sctp: RTCSctpTransport, size: int) -> None:
    """Pieces of a message that has a beginning and no end, faster than any window allows."""
    flags = SCTP_DATA_FIRST_FRAG
    while True:
        await _send_chunk(sctp, stream=1, protocol=WEBRTC_STRING, data=b"x" * size, flags=flags)
        flags = 0
        await asyncio.sleep(0)


async def _still_speaks(heard: Heard) -> None:
    before = len(heard.packets)
    await heard.until(lambda: len(heard.packets) > before)
