"""A cable between a node and its store, which a test can cut: then the store hears nothing more of it, as after `kill -9`."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress

from fakes.ports import free_port


class Cable:
    def __init__(self, far_port: int) -> None:
        self.port = free_port()
        self._far_port = far_port
        self._server: asyncio.Server | None = None
        self._ends: set[asyncio.StreamWriter] = set()

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    async def lay(self) -> None:
        self._server = await asyncio.start_server(self._join, "127.0.0.1", self.port)

    def cut(self) -> None:
        """Who calls is refused at once."""
        assert self._server is not None
        self._server.close()
        for end in self._ends:
            end.transport.abort()

    async def _join(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._far_port)
        self._ends |= {writer, far_writer}
        await asyncio.gather(_carry(reader, far_writer), _carry(far_reader, writer))


async def _carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
    writer.close()


@asynccontextmanager
async def laid_cable(far_port: int) -> AsyncGenerator[Cable]:
    cable = Cable(far_port)
    await cable.lay()
    try:
        yield cable
    finally:
        cable.cut()
