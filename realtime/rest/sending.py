"""A response that goes out while it is made."""

import asyncio

from aiohttp import web

from realtime.context import CONTEXT

SMALL_BYTES = 16 << 10
"""A quarter of what a transport takes before it makes its writer wait."""


class Outgoing:
    """Started lazily: until the first write a failure can still become an error response."""

    def __init__(self, request: web.Request, headers: dict[str, str]) -> None:
        self._request = request
        self._limit_s = request.app[CONTEXT].settings.send_timeout_s
        self.response = web.StreamResponse(headers=headers)

    async def write(self, data: bytes) -> None:
        """Waits for a slow client. Raises ConnectionResetError when it takes nothing for too long."""
        if self._takes_at_once(data):  # as nearly always: a timer for each token would be a tenth of its cost
            await self.response.write(data)
            return
        try:
            async with asyncio.timeout(self._limit_s):
                if not self.response.prepared:
                    await self.response.prepare(self._request)
                await self.response.write(data)
        except TimeoutError as slow:
            raise ConnectionResetError(f"the client has taken nothing for {self._limit_s:g} s") from slow

    def _takes_at_once(self, data: bytes) -> bool:
        transport = self._request.transport
        if transport is None or not self.response.prepared:
            return False
        return len(data) <= SMALL_BYTES and not transport.get_write_buffer_size()

    async def end(self) -> web.StreamResponse:
        await self.response.write_eof()
        return self.response
