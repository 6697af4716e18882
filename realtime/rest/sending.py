"""A response that goes out while it is made."""

import asyncio

from aiohttp import web

from realtime.context import CONTEXT


class Outgoing:
    """Started lazily: until the first write a failure can still become an error response."""

    def __init__(self, request: web.Request, headers: dict[str, str]) -> None:
        self._request = request
        self._limit_s = request.app[CONTEXT].settings.send_timeout_s
        self.response = web.StreamResponse(headers=headers)

    async def write(self, data: bytes) -> None:
        """Waits for a slow client. Raises ConnectionResetError when it takes nothing for too long."""
        try:
            async with asyncio.timeout(self._limit_s):
                if not self.response.prepared:
                    await self.response.prepare(self._request)
                await self.response.write(data)
        except TimeoutError as slow:
            raise ConnectionResetError(f"the client has taken nothing for {self._limit_s:g} s") from slow

    async def end(self) -> web.StreamResponse:
        await self.response.write_eof()
        return self.response
