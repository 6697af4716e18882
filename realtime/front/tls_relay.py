"""TLS ends at the front: a node cannot go on with a connection whose keys another process holds. The bytes are copied."""

import asyncio
import socket
from typing import cast

from realtime.front.head import is_whole
from realtime.listener import TLS_STEP_S
from realtime.tls import Certificate


class Relay(asyncio.Protocol):
    """One side of a connection; what comes in goes out on the `other`. Before there is another it waits in `head`, of which a
    client can send no more than makes it whole (policy: block)."""

    def __init__(self) -> None:
        self.head = b""
        self._whole = asyncio.Event()
        self._transport: asyncio.Transport | None = None
        self._other: Relay | None = None
        self._lost = False

    async def whole_head(self) -> bytes:
        """Raises ConnectionResetError when the client goes before."""
        await self._whole.wait()
        if self._lost:
            raise ConnectionResetError("the client went before it had said what it wants")
        return self.head

    def join(self, other: "Relay") -> None:
        """From now on both pass on what they get; `other` has begun to run."""
        self._other, other._other = other, self
        other._write(self.head)
        self._read_on()
        if self._lost:
            other.close()

    def close(self) -> None:
        """What was written before still goes out, as long as the reader takes it."""
        if self._transport is not None:
            self._transport.close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        if self._other is not None:
            self._other._write(data)
            return
        self.head += data
        if is_whole(self.head):
            self._whole.set()
            self._pause_reading()

    def eof_received(self) -> None:
        """Who has nothing more to say hears nothing more: TLS has no half-closed connections."""

    def connection_lost(self, exc: Exception | None) -> None:
        self._lost = True
        self._whole.set()
        if self._other is not None:
            self._other.close()

    def pause_writing(self) -> None:
        if self._other is not None:
            self._other._pause_reading()

    def resume_writing(self) -> None:
        if self._other is not None:
            self._other._read_on()

    def _write(self, data: bytes) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(data)

    def _pause_reading(self) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.pause_reading()

    def _read_on(self) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()


async def unwrapped(accepted: socket.socket, certificate: Certificate) -> Relay:
    """The client's side, after the handshake. Raises OSError."""
    relay = Relay()  # what uvloop returns is its own protocol of TLS
    await asyncio.get_running_loop().connect_accepted_socket(
        lambda: relay,
        accepted,
        ssl=certificate.context,
        ssl_handshake_timeout=TLS_STEP_S,
        ssl_shutdown_timeout=TLS_STEP_S,
    )
    return relay


async def joined(client: Relay, ours: socket.socket) -> None:
    """`ours` is one end of a pair, whose other end a node reads. Raises OSError."""
    _, node = await asyncio.get_running_loop().create_connection(Relay, sock=ours)
    client.join(node)
