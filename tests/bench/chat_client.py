"""A client of `POST /v1/chat/completions` that costs next to nothing: it shares two cores with what it measures.

It notes when the first text came and keeps the bytes until the end. Connections are kept alive, one for each question under way.
"""

import asyncio
import re
import time
from typing import Any
from urllib.parse import urlsplit

import msgspec

from bench.load import Answer, Question

FIRST_TEXT = re.compile(rb'"(?:content|transcript)":"[^"]')
TOKENS = re.compile(rb'"completion_tokens":(\d+)')
END_OF_BODY = b"\r\n0\r\n\r\n"


class ChatClient:
    """`more` is merged into every body, for instance modalities."""

    def __init__(self, url: str, model: str, **more: Any) -> None:
        host, _, port = urlsplit(url).netloc.rpartition(":")
        self._host, self._port = host, int(port)
        self._body = {"model": model, "stream": True, "stream_options": {"include_usage": True}, **more}
        self._idle: list[_Connection] = []

    async def ask(self, question: Question) -> Answer:
        """Raises RuntimeError for anything but a whole answer."""
        connection = self._idle.pop() if self._idle else await self._connect()
        answer = await connection.exchange(self._request(question))
        self._idle.append(connection)
        return answer

    def close(self) -> None:
        for connection in self._idle:
            connection.close()

    async def _connect(self) -> "_Connection":
        _, connection = await asyncio.get_running_loop().create_connection(_Connection, self._host, self._port)
        return connection

    def _request(self, question: Question) -> bytes:
        messages = [{"role": "user", "content": question.text}]
        body = msgspec.json.encode({**self._body, "messages": messages, "max_tokens": question.max_tokens})
        head = (
            "POST /v1/chat/completions HTTP/1.1",
            f"Host: {self._host}:{self._port}",
            "Content-Type: application/json",
            f"Content-Length: {len(body)}",
        )
        return "\r\n".join((*head, "", "")).encode() + body


class _Connection(asyncio.Protocol):
    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._received = bytearray()
        self._first_at: float | None = None
        self._ended: asyncio.Future[float] | None = None

    async def exchange(self, request: bytes) -> Answer:
        assert self._transport is not None
        self._received.clear()
        self._first_at = None
        self._ended = asyncio.get_running_loop().create_future()
        asked_at = time.monotonic()
        self._transport.write(request)
        ended_at = await self._ended
        tokens = TOKENS.search(self._received)
        if self._first_at is None or tokens is None:
            raise RuntimeError(f"expected a streamed answer, got {bytes(self._received[-500:])!r}")
        return Answer(self._first_at - asked_at, ended_at - asked_at, int(tokens[1]))

    def close(self) -> None:
        assert self._transport is not None
        self._transport.close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._received += data
        if self._first_at is None and FIRST_TEXT.search(self._received):
            self._first_at = time.monotonic()
        if self._received.endswith(END_OF_BODY) or not self._received.startswith(b"HTTP/1.1 200"):
            self._end()

    def connection_lost(self, exc: Exception | None) -> None:
        self._end()

    def _end(self) -> None:
        if self._ended is not None and not self._ended.done():
            self._ended.set_result(time.monotonic())
