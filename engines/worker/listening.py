"""Where the worker listens: a Unix socket, or a TCP port with a door that asks for the secret."""

import asyncio
import os
import socket
import stat
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

from engines.connectors.between_hosts import BetweenHosts
from engines.connectors.tcp import TcpConnector
from engines.network import door
from engines.network.addresses import TcpAddress, address
from engines.network.door import Door
from engines.network.handshake import Purpose
from engines.network.raw_connection import RawConnection
from engines.network.secret_file import read_secret
from engines.worker.spec import WorkerSpec

LONGEST_PATH_BYTES = 107
"""sun_path of a Unix socket on Linux, without the closing zero."""

BACKLOG = 64


def listener(spec: WorkerSpec) -> socket.socket:
    """The launcher's socket where it handed one over, else one bound here. Raises OSError and ValueError."""
    if spec.listen_fd is not None:
        inherited = socket.socket(fileno=spec.listen_fd)
        inherited.set_inheritable(False)  # a model's own processes must not keep it open
        return inherited
    if spec.listen:
        return door.listening(_tcp(spec.listen), read_secret(spec.secret_file))
    path = Path(spec.socket)
    if len(os.fsencode(path)) > LONGEST_PATH_BYTES:
        raise ValueError(f"socket: expected a path of at most {LONGEST_PATH_BYTES} bytes, got {path}")
    _private_folder(path.parent)
    bound = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    if bound.connect_ex(str(path)) == 0:
        bound.close()
        raise ValueError(f"socket: expected a path where nobody listens, got {path}, where somebody does")
    path.unlink(missing_ok=True)
    bound.bind(str(path))
    bound.listen(BACKLOG)
    return bound


def between_hosts(spec: WorkerSpec) -> BetweenHosts:
    """Raises OSError and ValueError."""
    public = _tcp(spec.public) if spec.public else None
    return BetweenHosts(spec.between_hosts, public, read_secret(spec.secret_file), spec.ring_mb << 20)


Connected: TypeAlias = Callable[[], tuple[asyncio.BaseProtocol, "asyncio.Task[None]"]]
"""Makes the protocol of a new control connection, and the task that is over when that has ended."""


async def serve(listener: socket.socket, connected: Connected, tcp: TcpConnector | None) -> None:
    """Until cancelled. A connection for payloads, which comes over TCP alone, goes to `tcp`, any other to `connected`."""
    loop = asyncio.get_running_loop()
    if tcp is None or listener.family == socket.AF_UNIX:
        server = await loop.create_unix_server(lambda: connected()[0], sock=listener)
        async with server:
            await server.serve_forever()
        return

    async def control(connection: RawConnection) -> None:
        protocol, served = connected()
        await loop.create_connection(lambda: protocol, sock=connection.detached())
        await asyncio.wait([served])  # so long it is a guest

    await Door(listener, tcp.secret, {Purpose.CONTROL: control, Purpose.PAYLOADS: tcp.serve}, tcp.faults.note).run()


def _tcp(text: str) -> TcpAddress:
    place = address(text)
    if not isinstance(place, TcpAddress):
        raise ValueError(f"address: expected tcp://host:port, got {text!r}")
    return place


def _private_folder(folder: Path) -> None:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    status = folder.stat()
    if status.st_uid != os.getuid() or stat.S_IMODE(status.st_mode) & 0o077:
        raise ValueError(f"socket: expected its folder {folder} to be ours with mode 0700, got {stat.filemode(status.st_mode)}")
