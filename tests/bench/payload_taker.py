"""The consumer's process of the connector benchmark: it takes payloads and 64-byte messages, and answers when it had them."""

import asyncio
import os
import socket
import struct
import time
from collections import deque

from engines.connectors.contents import Content
from engines.connectors.process import Connectors
from engines.messages import to_gateway, to_worker
from engines.messages.connection import Connection
from engines.messages.to_gateway import Emit, ToGateway
from engines.payloads import Payload
from engines.worker.memory import resident_bytes

HOP_BYTES = 64
ANSWER = struct.Struct("<qBBq")
"""When the payload was there (time.monotonic_ns, one clock for all processes), its first and last byte, resident bytes."""
STAMP = struct.Struct("<q")
RSS_EVERY = 1000


class Taker:
    """Payloads come over a control connection, as between workers and gateways; answers go back where the hops come from."""

    def __init__(self, connectors: Connectors) -> None:
        self._connectors = connectors
        self._contents: deque[Content | None] = deque()
        """Bounded by the producer, which waits for answers."""
        self._arrived: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def received(self, message: ToGateway) -> None:
        assert isinstance(message, Emit)
        self._arrive(message.chunk.content)

    def lost(self, reason: Exception | None) -> None:
        self._arrive(None)

    async def payloads(self, answers: asyncio.StreamWriter) -> None:
        """Each is held until the next one is there. Letting go of it is work for afterwards: nobody waits for that."""
        held, resident, count = Payload(), 0, 0
        while (content := await self._next()) is not None:
            payload = await self._connectors.get(content)
            now = time.monotonic_ns()
            held = payload
            samples = held.arrays["samples"].data
            if count % RSS_EVERY == 0:
                resident = resident_bytes()
            count += 1
            answers.write(ANSWER.pack(now, samples[0], samples[-1], resident))

    async def _next(self) -> Content | None:
        if not self._contents:
            self._arrived = asyncio.get_running_loop().create_future()
            await self._arrived
        return self._contents.popleft()

    def _arrive(self, content: Content | None) -> None:
        self._contents.append(content)
        if not self._arrived.done():
            self._arrived.set_result(None)


async def hops(reader: asyncio.StreamReader, answers: asyncio.StreamWriter) -> None:
    while True:
        try:
            await reader.readexactly(HOP_BYTES)
        except asyncio.IncompleteReadError:
            break
        answers.write(STAMP.pack(time.monotonic_ns()))


async def take(payloads_fd: int, hops_fd: int, core: int) -> None:
    """Until both sockets are closed."""
    os.sched_setaffinity(0, {core})
    connectors = Connectors(0)
    taker = Taker(connectors)
    connection = Connection(to_gateway.decoder, to_worker.encoder, taker)
    await asyncio.get_running_loop().create_connection(lambda: connection, sock=socket.socket(fileno=payloads_fd))
    reader, writer = await asyncio.open_unix_connection(sock=socket.socket(fileno=hops_fd))
    async with asyncio.TaskGroup() as group:
        group.create_task(taker.payloads(writer))
        group.create_task(hops(reader, writer))
    writer.close()
    connectors.close()
