"""Accepts connections and gives each to whom it belongs, before anything of it has been read for good."""

import asyncio
import errno
import logging
import socket
from collections.abc import Awaitable, Callable
from typing import Protocol

from realtime.front.head import Wanted, is_filled_with_nothing, peek_head, wanted
from realtime.front.tls_relay import Relay, joined, unwrapped
from realtime.handed import End
from realtime.tls import Certificate

HEAD_LIMIT_S = 10.0
"""From its beginning a connection has so long to say what it wants, handshake included."""
MOST_UNDECIDED = 1_024
"""Connections that have not said yet what they want. Policy: the oldest leaves for a new one."""
TRIES = 3
"""Nodes that a connection is given to: one may have died a moment ago."""
FULL_PAUSE_S = 0.2
"""Between two tries to accept when the process is out of descriptors."""
FULL = frozenset((errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM))

log = logging.getLogger(__name__)


class Taker(Protocol):
    """Who serves connections: a node, or the front itself."""

    def take(self, connection: socket.socket, end: End | None) -> None:
        """The connection is its own from now on. Raises OSError when it takes none, and then it stays open."""
        ...


class Door:
    """`run` is its owner task. `choose` says whom a request is for; `refuse` takes what nobody else does."""

    def __init__(
        self,
        listening: socket.socket,
        certificate: Certificate | None,
        choose: Callable[[Wanted], Awaitable[Taker]],
        refuse: Taker,
        head_limit_s: float = HEAD_LIMIT_S,
    ) -> None:
        listening.setblocking(False)
        self._listening = listening
        self._certificate = certificate
        self._choose = choose
        self._refuse = refuse
        self._head_limit_s = head_limit_s
        self._undecided: dict[asyncio.Task[None], None] = {}
        """Oldest first."""

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            while True:
                accepted = await self._accepted()
                if len(self._undecided) >= MOST_UNDECIDED:
                    next(iter(self._undecided)).cancel()
                task = group.create_task(self._pass_on(accepted))
                self._undecided[task] = None
                task.add_done_callback(self._undecided.pop)
                await asyncio.sleep(0)  # a crowd would otherwise keep the loop

    async def _accepted(self) -> socket.socket:
        while True:
            try:
                accepted, _ = await asyncio.get_running_loop().sock_accept(self._listening)
            except OSError as failed:
                if failed.errno in FULL:
                    log.error("no connection can be accepted: %s", failed.strerror)
                    await asyncio.sleep(FULL_PAUSE_S)
            else:
                return accepted

    async def _pass_on(self, accepted: socket.socket) -> None:
        """The transport's funnel: what goes wrong ends this connection and nothing else."""
        try:
            if self._certificate is None:
                await self._pass_on_plain(accepted)
            else:
                await self._pass_on_unwrapped(accepted, self._certificate)
        except OSError as gone:
            log.debug("a connection came to nothing: %s", gone)
        except Exception:  # our own fault: it is told, and the others go on
            log.exception("a connection was dropped")

    async def _pass_on_plain(self, accepted: socket.socket) -> None:
        try:
            async with asyncio.timeout(self._head_limit_s):
                head = await peek_head(accepted)
            await self._give(head, accepted, None)
        except BaseException:
            accepted.close()
            raise

    async def _pass_on_unwrapped(self, accepted: socket.socket, certificate: Certificate) -> None:
        """Raises OSError."""
        client: Relay | None = None
        try:
            end = End(_address(accepted.getpeername()), _address(accepted.getsockname()))
            async with asyncio.timeout(self._head_limit_s):
                client = await unwrapped(accepted, certificate)
                head = await client.whole_head()
            ours, theirs = socket.socketpair()
            try:
                await self._give(head, theirs, end)
                await joined(client, ours)
            except BaseException:
                ours.close()
                theirs.close()
                raise
        except BaseException:
            if client is None:
                accepted.close()
            else:
                client.close()
            raise

    async def _give(self, head: bytes, connection: socket.socket, end: End | None) -> None:
        """Raises OSError."""
        if is_filled_with_nothing(head):
            raise ConnectionAbortedError("the client sent blank lines in place of a request")
        for _ in range(TRIES):
            taker = await self._choose(wanted(head))
            try:
                return taker.take(connection, end)
            except OSError as lost:
                log.warning("a node takes no connection: %s", lost)
        return self._refuse.take(connection, end)


def _address(name: tuple[str, int]) -> str:
    return name[0]
