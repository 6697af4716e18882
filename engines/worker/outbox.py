"""What waits to be written to one gateway."""

import asyncio
from collections import deque

from engines.messages.framing import frame
from engines.messages.to_gateway import ToGateway, encoder

ROOM_MESSAGES = 256


class Outbox:
    """Overflow policy: block. Chunks are bounded by the credit of their requests; everything else answers a message of the
    gateway, and the reader of those waits for room before it reads the next."""

    def __init__(self) -> None:
        self._frames: deque[bytes] = deque()
        self._filled = asyncio.Event()
        self._room = asyncio.Event()
        self._room.set()

    def send(self, message: ToGateway) -> None:
        """Raises FrameTooLarge."""
        self._frames.append(frame(encoder.encode(message)))
        self._filled.set()
        if len(self._frames) >= ROOM_MESSAGES:
            self._room.clear()

    async def room(self) -> None:
        await self._room.wait()

    async def write_to(self, writer: asyncio.StreamWriter) -> None:
        """Write until cancelled; `drain` holds it back when the gateway does not read."""
        while True:
            await self._filled.wait()
            self._filled.clear()
            while self._frames:
                writer.write(self._frames.popleft())
                await writer.drain()
            self._room.set()
