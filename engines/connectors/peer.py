"""The connections to one producer of payloads."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator

from engines.network.addresses import TcpAddress
from engines.network.handshake import Purpose, dial
from engines.network.raw_connection import RawConnection

MOST_CONNECTIONS = 4
"""One fetch each; the next ones wait. More would not make a link faster."""
KEPT_S = 10.0
"""A connection that nobody needs is closed after this: before the producer loses its patience."""


class Peer:
    def __init__(self, address: TcpAddress, secret: bytes) -> None:
        self.in_use = 0
        self._address = address
        self._secret = secret
        self._turns = asyncio.Semaphore(MOST_CONNECTIONS)
        self._idle: list[RawConnection] = []
        self._expiry: asyncio.TimerHandle | None = None
        self._closed = False

    @contextlib.asynccontextmanager
    async def connection(self) -> AsyncGenerator[RawConnection]:
        """For one fetch, which must leave nothing unread; after an exception inside it is closed. Raises OSError."""
        self.in_use += 1
        try:
            async with self._turns:
                connection = self._reusable() or await dial(self._address, self._secret, Purpose.PAYLOADS)
                try:
                    yield connection
                except BaseException:
                    connection.close()
                    raise
                self._keep(connection)
        finally:
            self.in_use -= 1

    def close(self) -> None:
        """What is in use is closed by its user."""
        self._closed = True
        self._drop_idle()

    def _reusable(self) -> RawConnection | None:
        while self._idle:
            connection = self._idle.pop()
            if connection.is_quiet:
                return connection
            connection.close()
        return None

    def _keep(self, connection: RawConnection) -> None:
        if self._closed:
            connection.close()
            return
        self._idle.append(connection)
        if self._expiry is not None:
            self._expiry.cancel()
        self._expiry = asyncio.get_running_loop().call_later(KEPT_S, self._drop_idle)

    def _drop_idle(self) -> None:
        if self._expiry is not None:
            self._expiry.cancel()
            self._expiry = None
        while self._idle:
            self._idle.pop().close()
