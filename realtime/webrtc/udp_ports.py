"""One UDP port for a call, on every address of this machine: that is what firewalls and container engines forward."""

import errno
import random
import socket
from collections.abc import Iterable, Iterator, Sequence

from realtime.errors import SERVER, Refusal

RECEIVE_BUFFER_BYTES = 256 << 10
TRIES = 32
"""For a port of the system's choice that is free on all addresses at once."""
RETRY_AFTER_S = 5


def bind_one_port(addresses: Sequence[str], ports: tuple[int, int] | None) -> list[socket.socket]:
    """Non-blocking sockets, one for each address that can be bound, all with one port, within `ports` where given.

    Raises Refusal (503) when none is free.
    """
    for port in _tries(ports):
        sockets = _bind_all(addresses, port)
        if sockets is not None:
            return sockets
    where = "the system has no free UDP port" if ports is None else f"all UDP ports from {ports[0]} to {ports[1]} are taken"
    raise Refusal(f"{where}; try again later", status=503, code="no_free_port", type=SERVER, retry_after_s=RETRY_AFTER_S)


def _tries(ports: tuple[int, int] | None) -> Iterator[int]:
    """0 stands for a port of the system's choice. A range is tried from a random place on, so that calls seldom meet."""
    if ports is None:
        yield from (0 for _ in range(TRIES))
        return
    first, last = ports
    start = random.randint(first, last)
    yield from (*range(start, last + 1), *range(first, start))


def _bind_all(addresses: Iterable[str], port: int) -> list[socket.socket] | None:
    """None when one of them has this port taken. An address that vanished, or that the system refuses, is left out."""
    sockets: list[socket.socket] = []
    for address in addresses:
        bound = _socket(address)
        try:
            bound.bind((address, port))
        except OSError as wrong:
            bound.close()
            if wrong.errno == errno.EADDRINUSE:
                _close(sockets)
                return None
            continue
        sockets.append(bound)
        port = bound.getsockname()[1]
    return sockets or None


def _socket(address: str) -> socket.socket:
    opened = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_DGRAM)
    opened.setblocking(False)
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER_BYTES)
    return opened


def _close(sockets: Iterable[socket.socket]) -> None:
    for opened in sockets:
        opened.close()
