"""Messages that a client has sent and its session has not yet come to."""

import asyncio
from collections import deque

MAX_MESSAGES = 1024
MAX_BYTES = 48 << 20
"""Two of the largest messages."""


class Inbox:
    """First in, first out. Overflow policy: block. The reader then leaves the rest in the socket, and the client has to wait.

    A message is taken in whole whatever its size, so at most one of the largest is held above MAX_BYTES.
    """

    def __init__(self) -> None:
        self._messages: deque[bytes] = deque()
        self._bytes = 0
        self._changed = asyncio.Condition()

    async def put(self, message: bytes) -> None:
        async with self._changed:
            await self._changed.wait_for(self._has_room)
            self._messages.append(message)
            self._bytes += len(message)
            self._changed.notify_all()

    async def get(self) -> bytes:
        async with self._changed:
            await self._changed.wait_for(lambda: bool(self._messages))
            message = self._messages.popleft()
            self._bytes -= len(message)
            self._changed.notify_all()
            return message

    def _has_room(self) -> bool:
        return len(self._messages) < MAX_MESSAGES and self._bytes < MAX_BYTES
