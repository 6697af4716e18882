"""The data channel `oai-events` as the wire of a session."""

import asyncio
import contextlib

from realtime.errors import SERVER, ErrorBody, Refusal
from realtime.openai_realtime.server_events import Error, EventEncoder
from realtime.openai_realtime.wire import Ended
from realtime.webrtc.peer import ChannelClosed, MessageTooLarge, Peer

MAX_WAITING = 256
"""Messages that the session has not come to, of 256 KiB each at most."""
OPEN_TIMEOUT_S = 15.0
"""A client that has not opened its channel by then is spoken with by voice alone: its session must not wait for ever."""


class Mailbox:
    """Messages from the client. A data channel cannot be held back, so the overflow policy is to end the call."""

    def __init__(self) -> None:
        self._messages: asyncio.Queue[str | bytes | None] = asyncio.Queue(MAX_WAITING + 1)

    def arrived(self, message: str | bytes) -> None:
        """Never waits."""
        if self._messages.qsize() < MAX_WAITING:
            self._messages.put_nowait(message)
        elif not self._messages.full():
            self._messages.put_nowait(None)

    async def next(self) -> str | bytes:
        """Raises Ended."""
        message = await self._messages.get()
        if message is None:
            raise Ended(reason=f"the client sent {MAX_WAITING} messages faster than its session could obey")
        return message


class ChannelWire:
    """Without a data channel, or once the client has closed it, nothing arrives and what is said is dropped: the call goes on by
    voice alone."""

    def __init__(self, peer: Peer, mailbox: Mailbox, call_id: str) -> None:
        self._peer = peer
        self._mailbox = mailbox
        self._encoder = EventEncoder(call_id)
        self._voice_alone = False

    @property
    def is_delivered(self) -> bool:
        return self._peer.is_delivered and not self._voice_alone

    async def receive(self) -> bytes:
        message = await self._mailbox.next()
        if isinstance(message, bytes):
            raise Refusal("message: expected text, got binary", code="invalid_json")
        return message.encode()

    async def send(self, text: bytes) -> None:
        if self._voice_alone or not self._peer.has_channel:
            return
        try:
            async with asyncio.timeout(OPEN_TIMEOUT_S):
                await self._peer.channel_open.wait()
        except TimeoutError:
            self._voice_alone = True
            return
        try:
            await self._deliver(text)
        except ChannelClosed:
            self._voice_alone = True

    async def _deliver(self, text: bytes) -> None:
        try:
            await self._peer.send(text)
        except MessageTooLarge as refused:
            message = f"an event of {refused.size} bytes was left out: the client's data channel takes at most {refused.limit}"
            error = ErrorBody(message=message, type=SERVER, code="event_too_large")
            with contextlib.suppress(MessageTooLarge):  # not even this fits
                await self._peer.send(self._encoder.encode(Error(error=error)))
