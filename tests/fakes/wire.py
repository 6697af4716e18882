"""A client's end of a connection, without a network."""

import asyncio
from typing import Any

import msgspec

from realtime.openai_realtime.wire import Ended


class FakeWire:
    """Keeps what it is sent in `events`; `client_sends` is what the client says, None: it has gone. A `taking` that is not set
    takes nothing more."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []
        self.is_delivered = True
        self.taking = asyncio.Event()
        self.taking.set()
        self._sent: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._news = asyncio.Event()

    def client_sends(self, kind: str | None, **fields: Any) -> None:
        self._sent.put_nowait(None if kind is None else msgspec.json.encode({"type": kind, **fields}))

    async def until(self, kind: str) -> dict[str, Any]:
        """The first such event."""
        while True:
            for event in self.events:
                if event["type"] == kind:
                    return event
            self._news.clear()
            await self._news.wait()

    async def receive(self) -> bytes:
        message = await self._sent.get()
        if message is None:
            raise Ended
        return message

    async def send(self, text: bytes) -> None:
        await self.taking.wait()
        self.events.append(msgspec.json.decode(text))
        self._news.set()
