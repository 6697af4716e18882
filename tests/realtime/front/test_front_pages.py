"""The front's own answers: each ends its connection, so that the next request of the client is given to whom it is for."""

import asyncio
from collections.abc import Sequence

import pytest

from fakes.front_nodes import open_door
from realtime.front.pages import Pages
from realtime.health import ReadyReport, report
from realtime.settings import ServerSettings


def no_workers() -> ReadyReport:
    return report((), draining=False)


async def answers(port: int, request: bytes) -> Sequence[bytes]:
    """The status lines of all answers to one request that is sent twice on one connection, until the other side ends it."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(request * 2)
        async with asyncio.timeout(5):
            text = await reader.read(-1)
    finally:
        writer.close()
    return [line for line in text.split(b"\r\n") if line.startswith(b"HTTP/1.1 ")]


@pytest.mark.parametrize(
    ("request_line", "host", "status"),
    [
        (b"GET /healthz", b"localhost", b"200"),
        (b"GET /readyz", b"localhost", b"503"),
        (b"GET /v1/models", b"localhost", b"503"),
        (b"POST /healthz", b"localhost", b"503"),
        (b"GET /healthz", b"elsewhere.example", b"403"),
    ],
)
async def test_whatever_is_answered_the_connection_ends_with_it(request_line: bytes, host: bytes, status: bytes) -> None:
    async with Pages(ServerSettings(), [], no_workers).served() as own, open_door(own) as door:
        got = await answers(door.port, request_line + b" HTTP/1.1\r\nHost: " + host + b"\r\n\r\n")
        assert [line.split(b" ")[1] for line in got] == [status]
