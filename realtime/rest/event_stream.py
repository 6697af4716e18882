"""Server-sent events."""

import msgspec
from aiohttp import web

from realtime.rest.sending import Outgoing

HEADERS = {"Content-Type": "text/event-stream; charset=utf-8", "Cache-Control": "no-cache", "X-Accel-Buffering": "no"}


class EventStream:
    """Started by its first event; until then a failure can still become an error response."""

    def __init__(self, request: web.Request) -> None:
        self._outgoing = Outgoing(request, HEADERS)

    @property
    def started(self) -> bool:
        return self._outgoing.response.prepared

    async def send(self, *events: msgspec.Struct | dict[str, msgspec.Struct]) -> None:
        """Together in one write."""
        await self._outgoing.write(b"".join(b"data: " + msgspec.json.encode(event) + b"\n\n" for event in events))

    async def send_named(self, name: str, event: msgspec.Struct) -> None:
        await self._outgoing.write(b"event: %b\ndata: %b\n\n" % (name.encode(), msgspec.json.encode(event)))

    async def end(self) -> web.StreamResponse:
        await self._outgoing.write(b"data: [DONE]\n\n")
        return await self._outgoing.end()
