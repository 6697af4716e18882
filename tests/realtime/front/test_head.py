"""What the front makes of the head of a request."""

import asyncio
import socket
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from realtime.front.head import MOST_BYTES, Wanted, is_whole, peek_head, wanted

SESSION = "sess_0123456789abcdef0123"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("GET / HTTP/1.1", Wanted("/")),
        ("GET /readyz?x=1 HTTP/1.1", Wanted("/readyz")),
        (f"GET /v1/realtime?resume={SESSION}.s3cret&last_seq=4 HTTP/1.1", Wanted("/v1/realtime", SESSION)),
        (f"POST /v1/realtime/calls?hold=1&resume={SESSION}%2Es3cret HTTP/1.1", Wanted("/v1/realtime/calls", SESSION)),
        (f"GET /v1/realtime?resume={SESSION} HTTP/1.1", Wanted("/v1/realtime", SESSION)),
        ("GET /v1/realtime?resume=.s3cret HTTP/1.1", Wanted("/v1/realtime")),
        ("GET /v1/realtime?resume=a%7Bb%7D.x HTTP/1.1", Wanted("/v1/realtime")),
        (f"GET /v1/realtime?resume={'s' * 65}.x HTTP/1.1", Wanted("/v1/realtime")),
        ("GET /v1/realtime?resume=a.1&resume=b.2 HTTP/1.1", Wanted("/v1/realtime", "a")),
        (f"GET /v1/realtime?{'a=1&' * 100}resume=a.1 HTTP/1.1", Wanted("/v1/realtime")),
        ("DELETE /v1/realtime/calls/rtc_2_00ff HTTP/1.1", Wanted("/v1/realtime/calls/rtc_2_00ff", None, 2)),
        ("POST /v1/realtime/calls/rtc_12_00ff/hangup HTTP/1.1", Wanted("/v1/realtime/calls/rtc_12_00ff/hangup", None, 12)),
        ("PATCH /v1/realtime/calls/rtc%5F3_00ff HTTP/1.1", Wanted("/v1/realtime/calls/rtc_3_00ff", None, 3)),
        ("DELETE /v1/realtime/calls/rtc_00ff HTTP/1.1", Wanted("/v1/realtime/calls/rtc_00ff")),
        ("GET /pictures/pic_3_00ff.png HTTP/1.1", Wanted("/pictures/pic_3_00ff.png", None, 3)),
        ("GET /pictures/pic_00ff.png HTTP/1.1", Wanted("/pictures/pic_00ff.png")),
        ("GET http://elsewhere/ HTTP/1.1", Wanted()),
        ("nonsense", Wanted()),
        ("", Wanted()),
    ],
)
def test_where_a_request_belongs(line: str, expected: Wanted) -> None:
    assert wanted(f"{line}\r\nHost: localhost\r\n\r\n".encode()) == expected


@given(st.binary(max_size=300))
def test_whatever_the_bytes_are_they_belong_somewhere(head: bytes) -> None:
    found = wanted(head)
    assert found.session_id is None or 1 <= len(found.session_id) <= 64


@given(st.text(max_size=80))
def test_a_session_id_is_never_anything_that_a_key_of_the_store_could_not_hold(token: str) -> None:
    found = wanted(f"GET /v1/realtime?resume={quote(token)} HTTP/1.1\r\n\r\n".encode()).session_id
    assert found is None or found == token.partition(".")[0]


@asynccontextmanager
async def connected() -> AsyncGenerator[tuple[socket.socket, socket.socket]]:
    """Both ends of a TCP connection: the client's, which blocks, and the server's."""
    with socket.create_server(("127.0.0.1", 0)) as listening, socket.create_connection(listening.getsockname()) as client:
        server, _ = listening.accept()
        with server:
            server.setblocking(False)
            yield client, server


async def test_a_head_in_pieces_is_waited_for_and_stays_in_the_socket() -> None:
    head = b"GET /here HTTP/1.1\r\nHost: localhost\r\n\r\n"
    async with connected() as (client, server):
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        peeking = asyncio.create_task(peek_head(server))
        for byte in head:
            client.sendall(bytes([byte]))
            await asyncio.sleep(0)
        client.sendall(b"the body")
        assert (await peeking).startswith(head)
        assert server.recv(1000).startswith(head)


async def test_who_waits_for_the_rest_of_a_head_burns_no_time() -> None:
    async with connected() as (client, server):
        client.sendall(b"GET / HT")
        peeking = asyncio.create_task(peek_head(server))
        await asyncio.sleep(0)
        began = time.process_time()
        await asyncio.sleep(0.2)
        assert time.process_time() - began < 0.1
        client.sendall(b"TP/1.1\r\n\r\n")
        assert await peeking == b"GET / HTTP/1.1\r\n\r\n"


async def test_a_head_without_end_is_read_to_a_bound() -> None:
    async with connected() as (client, server):
        client.sendall(b"GET / HTTP/1.1\r\nX: " + b"x" * (MOST_BYTES + 100))
        head = await peek_head(server)
        assert len(head) == MOST_BYTES
        assert is_whole(head)


@pytest.mark.parametrize("said", [b"", b"GET / HTTP/1.1\r\n"])
async def test_who_goes_before_the_end_of_the_head_is_not_waited_for(said: bytes) -> None:
    async with connected() as (client, server):
        client.sendall(said)
        peeking = asyncio.create_task(peek_head(server))
        await asyncio.sleep(0)
        client.close()
        with pytest.raises(OSError, match="before it had said"):
            await peeking


async def test_whoever_gets_the_connection_is_woken_by_a_single_byte() -> None:
    async with connected() as (client, server):
        client.sendall(b"GET / HTTP/1.1\r\n\r\n")
        await peek_head(server)
        assert server.getsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT) == 1
