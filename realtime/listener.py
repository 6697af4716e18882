"""The socket that clients connect to, with TLS or without."""

import asyncio
import contextlib
import errno
import os
import socket
from collections.abc import Generator

from aiohttp import web

from realtime.tls import Certificate

BACKLOG = 512
TLS_STEP_S = 10.0
"""A client that has not finished its handshake, or its farewell, by then is let go."""


class CannotListen(OSError):
    """The address cannot be had."""


class Listener:
    def __init__(self, listening: socket.socket, certificate: Certificate | None) -> None:
        self.socket = listening
        self._certificate = certificate

    @property
    def port(self) -> int:
        return self.socket.getsockname()[1]

    @property
    def url(self) -> str:
        scheme = "http" if self._certificate is None else "https"
        host, port = self.socket.getsockname()[:2]
        return f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}"

    async def accept(self, runner: web.AppRunner) -> asyncio.Server:
        """Connections go to `runner`, which is set up already, until the result is closed."""
        if runner.server is None:
            raise RuntimeError("set the runner up first")
        create = asyncio.get_running_loop().create_server
        if self._certificate is None:
            return await create(runner.server, sock=self.socket, backlog=BACKLOG)
        return await create(  # not an aiohttp site: that leaves a handshake a whole minute
            runner.server,
            sock=self.socket,
            backlog=BACKLOG,
            ssl=self._certificate.context,
            ssl_handshake_timeout=TLS_STEP_S,
            ssl_shutdown_timeout=TLS_STEP_S,
        )


@contextlib.contextmanager
def listen(host: str, port: int, certificate: Certificate | None) -> Generator[Listener]:
    """Raises CannotListen."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        listening = socket.create_server((host, port), family=family, backlog=BACKLOG)
    except OSError as wrong:
        raise CannotListen(f"cannot listen on {host}:{port}: {_reason(wrong)}") from wrong
    with listening:
        yield Listener(listening, certificate)


def _reason(wrong: OSError) -> str:
    match wrong.errno:
        case errno.EADDRINUSE:
            return "another program listens there; stop that, or choose another --port"
        case errno.EACCES:
            return "ports below 1024 are for root; choose another --port"
        case _:  # its own words name the address once more
            words = wrong.strerror if isinstance(wrong, socket.gaierror) else os.strerror(wrong.errno or 0)
            return f"{words}; choose another --host"
