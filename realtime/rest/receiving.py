"""A body that comes in while its client can be trusted to send it."""

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

from aiohttp import web

from realtime.context import CONTEXT
from realtime.errors import Refusal

T = TypeVar("T")


async def arriving(request: web.Request, reading: Awaitable[T]) -> T:
    """The next of a body. Raises Refusal (400) when it is broken, and (408) when nothing comes for too long; the connection is
    then closed."""
    limit_s = request.app[CONTEXT].settings.receive_timeout_s
    try:
        async with asyncio.timeout(limit_s):
            return await reading
    except TimeoutError as stalled:
        message = f"body: expected more of it, got none for {limit_s:g} s"
        raise Refusal(message, status=408, code="request_timeout") from stalled
    except web.RequestPayloadError as broken:
        raise Refusal("body: expected it whole, and encoded as its headers say", code="invalid_body") from broken


async def whole_body(request: web.Request) -> bytes:
    """Raises Refusal (400, 408, 413)."""
    limit_bytes = request.app[CONTEXT].settings.max_body_bytes
    body = bytearray()
    while data := await arriving(request, request.content.readany()):
        body += data
        if len(body) > limit_bytes:
            raise Refusal(f"body: expected at most {limit_bytes} bytes, got more", status=413, code="request_entity_too_large")
    return bytes(body)
