"""A WebSocket as the wire of a session."""

import asyncio

from aiohttp import WSCloseCode, WSMsgType, web

from realtime.errors import Refusal
from realtime.openai_realtime.wire import Ended


class WebSocketWire:
    def __init__(self, socket: web.WebSocketResponse[bool], send_timeout_s: float) -> None:
        self._socket = socket
        self._send_timeout_s = send_timeout_s

    @property
    def is_delivered(self) -> bool:
        """TCP tells nothing of it."""
        return True

    async def receive(self) -> bytes:
        message = await self._socket.receive()
        match message.type:
            case WSMsgType.TEXT:
                return message.data
            case WSMsgType.BINARY:
                raise Refusal("message: expected text, got binary", code="invalid_json")
            case WSMsgType.CLOSE:
                raise Ended(reason="the client closed the connection", left=message.data == WSCloseCode.OK)
            case _:
                raise Ended

    async def send(self, text: bytes) -> None:
        try:
            async with asyncio.timeout(self._send_timeout_s):
                await self._socket.send_frame(text, WSMsgType.TEXT)
        except (ConnectionError, TimeoutError) as gone:
            raise Ended from gone
