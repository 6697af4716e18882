"""The hop to compare with: 64 bytes over a Unix socket from a child process into an awaited future, and nothing else."""

import asyncio
import os
import random
import socket
import struct
import subprocess
import sys
import time
from collections import deque
from collections.abc import Generator
from contextlib import contextmanager

import uvloop

ORDER = struct.Struct("<qd")
MESSAGE = struct.Struct("<q56x")


class Waiter(asyncio.Protocol):
    def __init__(self) -> None:
        self._arrived: deque[int] = deque()
        self._news: asyncio.Future[None] | None = None

    def data_received(self, data: bytes) -> None:
        for (sent_ns,) in MESSAGE.iter_unpack(data):
            self._arrived.append(sent_ns)
        if self._news is not None and not self._news.done():
            self._news.set_result(None)

    async def next(self) -> int:
        if not self._arrived:
            self._news = asyncio.get_running_loop().create_future()
            await self._news
        return self._arrived.popleft()


class BareHop:
    def __init__(self, sock: socket.socket, pid: int) -> None:
        self.pid = pid
        self._sock = sock
        self._waiter: Waiter | None = None
        self._transport: asyncio.Transport | None = None

    async def hops_us(self, count: int, gap_ms: float) -> list[float]:
        """From the child's clock before its write to ours after the await."""
        if self._transport is None or self._waiter is None:
            self._transport, self._waiter = await asyncio.get_running_loop().create_connection(Waiter, sock=self._sock)
        taken: list[float] = []
        self._transport.write(ORDER.pack(count, gap_ms))
        for _ in range(count):
            sent_ns = await self._waiter.next()
            taken.append((time.monotonic_ns() - sent_ns) / 1000)
        return taken


@contextmanager
def bare_hop() -> Generator[BareHop]:
    ours, theirs = socket.socketpair()
    with theirs:
        program = f"from bench.bare_hop import beat; beat({theirs.fileno()})"
        child = subprocess.Popen([sys.executable, "-c", program], pass_fds=[theirs.fileno()])
    try:
        yield BareHop(ours, child.pid)
    finally:
        child.kill()
        child.wait()


class Child(asyncio.Protocol):
    def __init__(self) -> None:
        self.orders: asyncio.Queue[tuple[int, float]] = asyncio.Queue()

    def data_received(self, data: bytes) -> None:
        self.orders.put_nowait(ORDER.unpack(data))

    def connection_lost(self, exc: Exception | None) -> None:
        os._exit(0)


async def serve(sock: socket.socket) -> None:
    transport, child = await asyncio.get_running_loop().create_connection(Child, sock=sock)
    while True:
        count, gap_ms = await child.orders.get()
        for _ in range(count):
            await asyncio.sleep(gap_ms / 1000 * random.uniform(0.5, 1.5))
            transport.write(MESSAGE.pack(time.monotonic_ns()))


def beat(fd: int) -> None:
    """The child: beats as it is told to, until its parent has gone."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(serve(socket.socket(fileno=fd)))
