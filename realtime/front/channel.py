"""The Unix socket between the front and one node: small messages, and with some of them a connection."""

import asyncio
import contextlib
import os
import socket
from collections.abc import Callable

LARGEST_BYTES = 64 << 10


def channel_pair() -> tuple[socket.socket, socket.socket]:
    """Both ends. Each message arrives whole, and the end of one side's process is the other's end of the channel."""
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)


class Channel:
    """`on_message` gets each message, and the connection that came with it, which is then its own; `on_end` is called once, when
    the other side has gone. `close` it."""

    def __init__(
        self, end: socket.socket, on_message: Callable[[bytes, socket.socket | None], None], on_end: Callable[[], None]
    ) -> None:
        end.setblocking(False)
        self._socket = end
        self._on_message = on_message
        self._on_end = on_end
        asyncio.get_running_loop().add_reader(end.fileno(), self._readable)

    def send(self, message: bytes, connection: socket.socket | None = None) -> None:
        """At once, or raises OSError: the other side has gone, or reads nothing. The connection stays open here, too."""
        descriptors = [] if connection is None else [connection.fileno()]
        socket.send_fds(self._socket, [message], descriptors)

    def close(self) -> None:
        """Idempotent. What nobody has read is lost, and connections in it are closed."""
        if self._socket.fileno() >= 0:
            asyncio.get_running_loop().remove_reader(self._socket.fileno())
            self._socket.close()

    def _readable(self) -> None:
        """All that is there, unless somebody closes the channel meanwhile."""
        while self._socket.fileno() >= 0:
            try:
                message, descriptors, _, _ = socket.recv_fds(self._socket, LARGEST_BYTES, 1)
            except BlockingIOError:
                return
            except OSError:
                message, descriptors = b"", []
            if not message:
                self.close()
                self._on_end()
                return
            self._on_message(message, _connection(descriptors))


def _connection(descriptors: list[int]) -> socket.socket | None:
    for surplus in descriptors[1:]:
        with contextlib.suppress(OSError):
            os.close(surplus)
    if not descriptors:
        return None
    connection = socket.socket(fileno=descriptors[0])
    connection.set_inheritable(False)  # Python's recv_fds takes no flag that would say so
    return connection
