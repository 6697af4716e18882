"""A TCP port that lets in whoever knows the deployment's secret, for control messages, payloads or both."""

import asyncio
import contextlib
import logging
import socket
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeAlias

from engines.network.addresses import TcpAddress
from engines.network.handshake import HandshakeFailed, Purpose, examine
from engines.network.raw_connection import RawConnection

BACKLOG = 64
MAX_KNOCKING = 64
"""Connections that have not proved anything yet; each gets HANDSHAKE_LIMIT_S. Policy: refuse."""
MAX_GUESTS = 512
"""Connections that have. Policy: refuse."""
FULL_PAUSE_S = 0.2
"""Between two tries to accept when the process is out of descriptors."""

log = logging.getLogger(__name__)

Host: TypeAlias = Callable[[RawConnection], Awaitable[None]]
"""Serves one connection to its end; what it raises as OSError ends that connection and nothing else."""


def listening(address: TcpAddress, secret: bytes) -> socket.socket:
    """Raises ValueError when others could connect without a secret, OSError when the address cannot be listened on."""
    if not secret and not address.is_loopback:
        raise ValueError(f"secret_file: expected a file with a secret, as {address} can be reached by others, got none")
    family, _, _, _, place = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
    listener = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(place)
        listener.listen(BACKLOG)
    except OSError as refused:
        listener.close()
        raise OSError(refused.errno, f"{address} cannot be listened on: {refused.strerror}") from refused
    return listener


class Door:
    """`run` is its owner task. `on_fault` hears, in one sentence, of every connection that was dropped."""

    def __init__(
        self, listener: socket.socket, secret: bytes, hosts: Mapping[Purpose, Host], on_fault: Callable[[str], None]
    ) -> None:
        self._listener = listener
        self._secret = secret
        self._hosts = hosts
        self._on_fault = on_fault
        self._knocking = 0
        self._guests = 0

    async def run(self) -> None:
        with self._listener:
            async with asyncio.TaskGroup() as group:
                while True:
                    accepted = await self._accepted()
                    if self._knocking >= MAX_KNOCKING:
                        accepted.close()
                        self._on_fault("a peer was turned away: too many are at the door")
                    else:
                        self._knocking += 1
                        group.create_task(self._serve(accepted))

    async def _accepted(self) -> socket.socket:
        while True:
            try:
                return (await asyncio.get_running_loop().sock_accept(self._listener))[0]
            except OSError as full:
                log.error("no connection can be accepted: %s", full.strerror)
                await asyncio.sleep(FULL_PAUSE_S)

    async def _serve(self, accepted: socket.socket) -> None:
        """The transport's funnel."""
        with contextlib.closing(accepted):
            try:
                connection, host = await self._admitted(accepted)
                self._guests += 1
                try:
                    await host(connection)
                finally:
                    self._guests -= 1
            except OSError as dropped:
                self._on_fault(f"a connection was dropped: {str(dropped) or 'the peer took too long'}")

    async def _admitted(self, accepted: socket.socket) -> tuple[RawConnection, Host]:
        try:
            connection = RawConnection(accepted)
            purpose = await examine(connection, self._secret)
        finally:
            self._knocking -= 1
        if purpose not in self._hosts:
            raise HandshakeFailed(f"a peer came for {purpose.name.lower()}, which nobody serves here")
        if self._guests >= MAX_GUESTS:
            raise ConnectionRefusedError(f"{MAX_GUESTS} are connected, which is the most")
        return connection, self._hosts[purpose]
