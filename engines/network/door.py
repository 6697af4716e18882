"""A TCP port that lets in whoever knows the deployment's secret, for control messages, payloads or both."""

import asyncio
import contextlib
import logging
import socket
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeAlias

from engines.network.addresses import TcpAddress
from engines.network.handshake import HandshakeFailed, Purpose, examine, turn_away
from engines.network.raw_connection import RawConnection

BACKLOG = 64
MAX_KNOCKING = 64
"""Connections that have not proved anything yet; each gets HANDSHAKE_LIMIT_S. Policy: of those from where most come
from, the oldest leaves for a new one. A peer of ours needs two round trips: who floods the door leaves it first."""
MOST_GUESTS = {Purpose.CONTROL: 64, Purpose.PAYLOADS: 512}
"""Connections that have, by what they came for: no number of fetches keeps a gateway out. Policy: refuse."""
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
        self._knocking: dict[RawConnection, str] = {}
        """Oldest first, each with the host that it comes from."""
        self._guests: Counter[Purpose] = Counter()

    async def run(self) -> None:
        with self._listener:
            async with asyncio.TaskGroup() as group:
                while True:
                    accepted, origin = await self._accepted()
                    group.create_task(self._serve(accepted, origin))
                    await asyncio.sleep(0)  # a crowd would otherwise keep the loop

    async def _accepted(self) -> tuple[socket.socket, str]:
        """And the host that it comes from."""
        while True:
            try:
                accepted, (origin, *_) = await asyncio.get_running_loop().sock_accept(self._listener)
            except OSError as full:
                log.error("no connection can be accepted: %s", full.strerror)
                await asyncio.sleep(FULL_PAUSE_S)
            else:
                return accepted, origin

    async def _serve(self, accepted: socket.socket, origin: str) -> None:
        """The transport's funnel: whatever a peer does ends its own connection at most."""
        with contextlib.closing(accepted):
            try:
                connection, purpose = await self._admitted(accepted, origin)
                self._guests[purpose] += 1
                try:
                    await self._hosts[purpose](connection)
                finally:
                    self._guests[purpose] -= 1
            except OSError as dropped:
                self._on_fault(f"a connection was dropped: {str(dropped) or 'the peer took too long'}")
            except Exception as error:  # noqa: BLE001 (our own fault: it is told, and the other guests stay)
                self._on_fault(f"a connection was dropped: {type(error).__name__}: {error}")

    async def _admitted(self, accepted: socket.socket, origin: str) -> tuple[RawConnection, Purpose]:
        connection = RawConnection(accepted)
        self._make_room()
        self._knocking[connection] = origin
        try:
            purpose = await examine(connection, self._secret, self._refusal)
        except OSError:
            if connection not in self._knocking:
                raise ConnectionAbortedError("too many were at the door") from None
            raise
        finally:
            self._knocking.pop(connection, None)
        if purpose not in self._hosts:
            raise HandshakeFailed(f"a peer came for {purpose.name.lower()}, which nobody serves here")
        return connection, purpose

    def _make_room(self) -> None:
        if len(self._knocking) < MAX_KNOCKING:
            return
        ((crowd, _),) = Counter(self._knocking.values()).most_common(1)
        oldest = next(connection for connection, origin in self._knocking.items() if origin == crowd)
        del self._knocking[oldest]
        turn_away(oldest)

    def _refusal(self, purpose: Purpose) -> str:
        most = MOST_GUESTS[purpose]
        return f"{most} are connected for {purpose.name.lower()}, which is the most" if self._guests[purpose] >= most else ""
