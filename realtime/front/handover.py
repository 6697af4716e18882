"""Connections that come from a front instead of from a listening socket, on their way into an aiohttp server."""

import asyncio
import logging
import socket

from aiohttp import web

from realtime.handed import End, Ends

log = logging.getLogger(__name__)


class Handover:
    """`runner` is set up, and ends the connections. `ends` learns where unwrapped ones come from."""

    def __init__(self, runner: web.AppRunner, ends: Ends) -> None:
        if runner.server is None:
            raise RuntimeError("set the runner up first")
        self._server = runner.server
        self._ends = ends
        self._beginning: set[asyncio.Task[None]] = set()

    def take(self, connection: socket.socket, end: End | None) -> None:
        """The connection is the server's from now on."""
        task = asyncio.create_task(self._begin(connection, end))
        self._beginning.add(task)
        task.add_done_callback(self._beginning.discard)

    async def _begin(self, connection: socket.socket, end: End | None) -> None:
        try:
            transport, _ = await asyncio.get_running_loop().connect_accepted_socket(self._server, connection)
        except OSError as gone:
            connection.close()
            log.debug("a connection was gone before it began: %s", gone)
            return
        if end is not None:
            self._ends[transport] = end  # before its first byte is read: that comes in a later turn of the loop
