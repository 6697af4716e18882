"""A control connection: messages go out as frames, and come in as plain calls while their bytes arrive."""

import asyncio
from typing import Generic, Protocol, TypeVar, cast

import msgspec

from engines.messages.framing import FrameCutter, FrameError, frame

OUTBOX_BYTES = 256 << 10
"""What the peer may leave unread before writing counts as full; it counts as free again below a quarter of it."""

T = TypeVar("T")
T_contra = TypeVar("T_contra", contravariant=True)


class Listener(Protocol[T_contra]):
    """Who hears what the peer says. It answers at once: it runs on the loop, between two reads."""

    def received(self, message: T_contra) -> None:
        """Whatever it raises ends the connection, with that as the reason."""
        ...

    def lost(self, reason: Exception | None) -> None:
        """Called once: nothing more will come, and what is sent from now on is dropped. None: closed by either side, between two
        frames."""
        ...


class Connection(asyncio.Protocol, Generic[T]):
    """One end; the protocol of a stream transport.

    What is sent in one turn of the loop goes out together at its end. `first_at_once`: apart from the first, which does not wait.
    Right at the end that others wait for; wrong where whoever waits runs on this loop and would come after the system call.

    `waits_for_reader`: while the peer leaves too much unread, nothing more is read of it. Right at the end that answers what it
    reads, wrong at both, which would wait for each other.
    """

    def __init__(
        self,
        decoder: msgspec.msgpack.Decoder[T],
        encoder: msgspec.msgpack.Encoder,
        listener: Listener[T],
        *,
        first_at_once: bool = False,
        waits_for_reader: bool = False,
    ) -> None:
        self._frames = FrameCutter(decoder)
        self._encode = encoder.encode
        self._listener = listener
        self._first_at_once = first_at_once
        self._waits_for_reader = waits_for_reader
        self._transport: asyncio.Transport | None = None
        self._loop = asyncio.get_running_loop()
        self._turn_ends = False
        self._outgoing: list[bytes] = []
        self._outgoing_bytes = 0
        self._held = False
        self._closed = False
        self._reason: Exception | None = None
        self._free = asyncio.Event()
        self._free.set()

    @property
    def unread_bytes(self) -> int:
        """Sent, and not yet taken by the kernel for the peer to read."""
        return self._outgoing_bytes + (self._transport.get_write_buffer_size() if self._transport else 0)

    def send(self, message: msgspec.Struct) -> None:
        """Raises FrameTooLarge."""
        framed = frame(self._encode(message))
        if self._closed or self._transport is None:
            return
        if not self._turn_ends:
            self._turn_ends = True
            self._loop.call_soon(self._end_turn)
            if self._first_at_once:
                self._transport.write(framed)
                return
        self._outgoing.append(framed)
        self._outgoing_bytes += len(framed)
        if self._outgoing_bytes > OUTBOX_BYTES:
            self._write()

    @property
    def has_room(self) -> bool:
        return self._free.is_set()

    async def room(self) -> None:
        """Wait until the peer has read most of what was sent, or is lost."""
        await self._free.wait()

    def hold(self) -> None:
        """Hear nothing more until `release`, not even that the peer has gone; its bytes wait where they are."""
        if self._transport and not self._held:
            self._held = True
            self._transport.pause_reading()

    def release(self) -> None:
        if self._held:
            self._held = False
            self._deliver()
            if self._transport and not self._held:
                self._transport.resume_reading()

    def close(self, reason: Exception | None = None) -> None:
        """`lost` is called soon. What the peer has not read is dropped: the end of a connection takes back everything anyway.
        Idempotent."""
        if self._transport and not self._closed:
            self._closed = True
            self._reason = reason
            self._transport.abort()

    # what the transport calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._transport.set_write_buffer_limits(OUTBOX_BYTES)

    def data_received(self, data: bytes) -> None:
        self._frames.feed(data)
        self._deliver()

    def eof_received(self) -> None:
        self.close(self._cut())

    def connection_lost(self, exc: Exception | None) -> None:
        self._closed = True
        self._free.set()
        self._listener.lost(self._reason or exc)

    def pause_writing(self) -> None:
        self._free.clear()
        if self._waits_for_reader:
            self.hold()

    def resume_writing(self) -> None:
        self._free.set()
        if self._waits_for_reader:
            self.release()

    def _deliver(self) -> None:
        """The funnel: whatever comes of a peer's message ends this connection at most."""
        try:
            while not self._held and not self._closed and (message := self._frames.next()) is not None:
                self._listener.received(message)
        except Exception as error:  # noqa: BLE001 (the connection's owner gets it as the reason)
            self.close(error)

    def _end_turn(self) -> None:
        self._turn_ends = False
        self._write()

    def _write(self) -> None:
        outgoing, self._outgoing, self._outgoing_bytes = self._outgoing, [], 0
        if outgoing and self._transport and not self._closed:
            self._transport.writelines(outgoing)

    def _cut(self) -> FrameError | None:
        try:
            self._frames.end()
        except FrameError as cut:
            return cut
        return None
