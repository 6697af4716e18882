"""A process that holds payloads for others, in this process: a TcpConnector behind a door of its own on loopback."""

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

from engines.connectors.tcp import LIMIT_BYTES, TcpConnector
from engines.network.addresses import TcpAddress
from engines.network.door import Door, listening
from engines.network.handshake import Purpose, examine
from engines.network.raw_connection import RawConnection

SECRET = b"the secret of these tests"
ANY_PORT = TcpAddress("127.0.0.1", 0)


@asynccontextmanager
async def producer(
    secret: bytes = SECRET,
    *,
    at: TcpAddress = ANY_PORT,
    limit_bytes: int = LIMIT_BYTES,
    clock: Callable[[], float] = time.monotonic,
    on_fault: Callable[[], None] = lambda: None,
) -> AsyncGenerator[tuple[TcpConnector, TcpAddress]]:
    """The connector, and where its door is."""
    listener = listening(at, secret)
    place = TcpAddress("127.0.0.1", listener.getsockname()[1])
    connector = TcpConnector(place, secret, limit_bytes=limit_bytes, clock=clock)

    def note(fault: str) -> None:
        connector.faults.note(fault)
        on_fault()

    door = asyncio.create_task(Door(listener, secret, {Purpose.PAYLOADS: connector.serve}, note).run())
    with listener:
        try:
            yield connector, place
        finally:
            connector.close()
            await _ended(door)


@asynccontextmanager
async def impostor(misbehave: Callable[[RawConnection], Awaitable[None]]) -> AsyncGenerator[TcpAddress]:
    """A producer that knows the secret and then does this with each connection, and hangs up."""
    listener = listening(ANY_PORT, SECRET)
    loop = asyncio.get_running_loop()

    async def serve(connection: RawConnection) -> None:
        try:
            await examine(connection, SECRET)
            await misbehave(connection)
        except ConnectionError:
            pass
        finally:
            connection.close()

    async def run() -> None:
        async with asyncio.TaskGroup() as group:
            while True:
                group.create_task(serve(RawConnection((await loop.sock_accept(listener))[0])))

    running = asyncio.create_task(run())
    with listener:
        try:
            yield TcpAddress("127.0.0.1", listener.getsockname()[1])
        finally:
            await _ended(running)


async def _ended(task: asyncio.Task[None]) -> None:
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
