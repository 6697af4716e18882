"""The data channel `oai-events` over SCTP (RFC 8831, RFC 8832), with bounds on what a client can make this server hold.

Mended in aiortc's association, each with a test that tells when it is no longer needed: a client that goes on sending pieces of
messages that never end; malformed chunks and text that is not UTF-8, which would have ended the whole call; unlimited streams.
"""

import asyncio
import contextlib
import logging
import struct
from collections.abc import Callable

from aiortc import InvalidStateError, RTCDataChannel
from aiortc.rtcsctptransport import Chunk, DataChunk, RTCSctpCapabilities, RTCSctpTransport

from realtime.webrtc.dtls import SecureLink
from realtime.webrtc.offer import Offer

log = logging.getLogger(__name__)

LABEL = "oai-events"
MAX_MESSAGE_BYTES = 256 << 10
"""What we say that we take; a client that knows better sends nothing longer."""
MAX_BUFFERED_BYTES = 256 << 10
"""Of messages that wait to be sent. Overflow policy: block."""
MALFORMED = (AssertionError, AttributeError, LookupError, TypeError, ValueError, struct.error, InvalidStateError)
"""What a client can bring about in aiortc's SCTP, which asserts and unpacks unchecked. Anything else ends the call."""
MAX_STREAMS = 64
MAX_CHUNKS_HELD = 2048
"""Pieces of incomplete messages; the longest message that we take has 227. Overflow policy: end the association."""
MAX_CHUNKS_AHEAD = 512
"""Beyond the first that is missing. Overflow policy: drop; it will be sent again."""


class MessageTooLarge(Exception):
    """The client does not take messages of `size` bytes, but of `limit` at most."""

    def __init__(self, size: int, limit: int) -> None:
        super().__init__(f"expected at most {limit} bytes, got {size}")
        self.size = size
        self.limit = limit


class ChannelClosed(Exception):
    """There is no data channel, or it is closed."""


class EventsChannel(RTCSctpTransport):
    """The association and the one channel of it that is used. Sets `opened` once the client has opened that; `left`: the client
    has closed it."""

    def __init__(self, link: SecureLink, offer: Offer, on_message: Callable[[str | bytes], None], opened: asyncio.Event) -> None:
        super().__init__(link)
        self.left = False
        self._liveness = link.liveness
        self._opened = opened
        self._offer = offer
        self._on_message = on_message
        self._inbound_streams_max = MAX_STREAMS
        self._channel: RTCDataChannel | None = None
        self._changed = asyncio.Event()
        self._over = False
        self._given_up = False
        self.on("datachannel", self._take)

    async def open(self) -> None:
        await self.start(RTCSctpCapabilities(self._offer.max_message_bytes), self._offer.sctp_port)

    async def close(self) -> None:
        await self.stop()
        self._end()

    async def send(self, text: bytes) -> None:
        """As text. Waits until the channel is open, and while MAX_BUFFERED_BYTES wait. Raises ChannelClosed, MessageTooLarge."""
        limit = self._offer.max_message_bytes
        if limit and len(text) > limit:
            raise MessageTooLarge(len(text), limit)
        channel = await self._writable()
        channel.send(text.decode())

    @property
    def is_delivered(self) -> bool:
        """The client has acknowledged all that it was sent."""
        return not (self._data_channel_queue or self._outbound_queue or self._sent_queue)

    async def _writable(self) -> RTCDataChannel:
        while not self._over:
            channel = self._channel
            if channel is not None and channel.readyState != "open":
                break
            if channel is not None and channel.bufferedAmount <= MAX_BUFFERED_BYTES:
                return channel
            self._changed.clear()
            await self._changed.wait()
        raise ChannelClosed

    def _take(self, channel: RTCDataChannel) -> None:
        """Channels with other labels are left alone, and so is a second one with this label."""
        if channel.label != LABEL or self._channel is not None:
            return
        self._channel = channel
        channel.bufferedAmountLowThreshold = MAX_BUFFERED_BYTES
        channel.on("message", self._on_message)
        channel.on("bufferedamountlow", self._changed.set)
        channel.on("close", self._end)
        self._opened.set()
        self._changed.set()

    def _is_open(self) -> bool:
        return self._channel is not None and self._channel.readyState == "open"

    def _end(self) -> None:
        self._over = True
        self._changed.set()

    async def _handle_data(self, data: bytes) -> None:
        self._liveness.sign()
        was_open = self._is_open()
        try:
            await super()._handle_data(data)
        except MALFORMED:
            log.warning("the data channel ends: a message on it could not be handled", exc_info=True)
            await self._give_up()
        self.left = self.left or (was_open and not self._is_open() and not self._given_up)

    async def _receive_data_chunk(self, chunk: DataChunk) -> None:
        ahead = (chunk.tsn - (self._last_received_tsn or 0)) & 0xFFFF_FFFF
        if chunk.stream_id >= MAX_STREAMS or MAX_CHUNKS_AHEAD < ahead < 1 << 31:
            return
        await super()._receive_data_chunk(chunk)
        held = sum(len(stream.reassembly) for stream in self._inbound_streams.values())
        if held > MAX_CHUNKS_HELD or self._advertised_rwnd <= 0:
            log.warning("the data channel ends: %d pieces of a message without an end", held)
            await self._give_up()

    async def _send_chunk(self, chunk: Chunk) -> None:
        with contextlib.suppress(ConnectionError):  # from timers and tasks of aiortc's own, after the end
            await super()._send_chunk(chunk)

    async def _give_up(self) -> None:
        self._given_up = True
        self._inbound_streams.clear()
        await self.stop()
        self._end()
