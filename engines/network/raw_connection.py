"""A TCP connection without a stream's buffers: bytes go straight out of and into the memory of whoever sends and reads."""

import asyncio
import socket

from engines.network.addresses import TcpAddress

SLICE_BYTES = 256 << 10
"""One system call, about 50 µs of copying; then everybody else on the loop has a turn."""
KEEPALIVE_IDLE_S, KEEPALIVE_INTERVAL_S, KEEPALIVE_PROBES = 10, 5, 3
"""A host that has vanished without a word is noticed after 25 s, when nothing is on its way to it."""
UNACKNOWLEDGED_LIMIT_MS = 60_000
"""Otherwise after this."""


class HungUp(ConnectionResetError):
    """The other side closed the connection before a message began."""


class RawConnection:
    """What fails closes it: who owns it calls `close` then, too. Raises OSError everywhere."""

    def __init__(self, connected: socket.socket) -> None:
        self.socket = connected
        self._loop = asyncio.get_running_loop()
        connected.setblocking(False)
        for level, option, value in (
            (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),
            (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
            (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, KEEPALIVE_IDLE_S),
            (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, KEEPALIVE_INTERVAL_S),
            (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, KEEPALIVE_PROBES),
            (socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, UNACKNOWLEDGED_LIMIT_MS),
        ):
            connected.setsockopt(level, option, value)

    @classmethod
    async def open(cls, address: TcpAddress) -> "RawConnection":
        """Tries every address that the name stands for, in order."""
        loop = asyncio.get_running_loop()
        last: OSError = ConnectionRefusedError(f"{address.host} stands for no address")
        for family, kind, protocol, _, place in await loop.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM):
            connecting = socket.socket(family, kind | socket.SOCK_NONBLOCK, protocol)
            try:
                await loop.sock_connect(connecting, place)
                return cls(connecting)
            except OSError as refused:
                connecting.close()
                last = refused
            except BaseException:
                connecting.close()
                raise
        raise last

    async def fill(self, buffer: memoryview) -> None:
        """Read exactly as many bytes as the buffer has. Raises HungUp when there are none."""
        whole = buffer.nbytes
        while buffer.nbytes:
            count = await self._loop.sock_recv_into(self.socket, buffer[:SLICE_BYTES])
            if count == 0 and buffer.nbytes == whole:
                raise HungUp("closed by the other side")
            if count == 0:
                raise ConnectionResetError(f"closed by the other side after {whole - buffer.nbytes} of {whole} bytes")
            buffer = buffer[count:]
            if buffer.nbytes:
                await asyncio.sleep(0)  # a fast sender would otherwise keep the loop

    async def read(self, nbytes: int) -> bytes:
        buffer = bytearray(nbytes)
        await self.fill(memoryview(buffer))
        return bytes(buffer)

    async def send(self, data: memoryview | bytes) -> None:
        """Waits as long as the other side does not read."""
        data = memoryview(data)
        for start in range(0, data.nbytes, SLICE_BYTES):
            if start:
                await asyncio.sleep(0)  # so would a fast reader
            await self._loop.sock_sendall(self.socket, data[start : start + SLICE_BYTES])

    @property
    def is_quiet(self) -> bool:
        """Whether the other side has neither said anything unasked nor gone."""
        try:
            self.socket.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return True
        except OSError:
            return False
        return False

    def detached(self) -> socket.socket:
        """The socket, for somebody who keeps it; this connection is closed."""
        return socket.socket(fileno=self.socket.detach())

    def close(self) -> None:
        self.socket.close()
