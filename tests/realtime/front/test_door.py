"""The front's door: whole connections come to whom they belong, over TCP and TLS, and whoever misbehaves is let go."""

import asyncio
import socket
import ssl
import struct
import warnings
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import aiohttp
import pytest
import pytest_asyncio

from fakes.certificates import write_pair
from fakes.front_nodes import FakeNode, OpenDoor, fake_node, open_descriptors, open_door
from realtime.front.head import MOST_BYTES, Wanted
from realtime.tls import Certificate


@pytest_asyncio.fixture
async def node() -> AsyncIterator[FakeNode]:
    async with fake_node("box-1") as node:
        yield node


class Way:
    """To the door: in the clear or over TLS."""

    def __init__(self, certificate: Certificate | None, trust: ssl.SSLContext | None) -> None:
        self.certificate = certificate
        self.trust = trust

    def client(self) -> aiohttp.ClientSession:
        return aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=self.trust or True))

    async def raw(self, door: OpenDoor) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection("localhost", door.port, ssl=self.trust)


@pytest.fixture(params=["plain", "tls"])
def way(request: pytest.FixtureRequest, tmp_path: Path) -> Way:
    if request.param == "plain":
        return Way(None, None)
    pair = write_pair(tmp_path)
    return Way(Certificate(pair.cert, pair.key), ssl.create_default_context(cafile=pair.cert))


async def test_a_request_comes_to_its_node_with_its_body_and_the_clients_address(node: FakeNode, way: Way) -> None:
    body = bytes(1_000_000)
    async with (
        open_door(node, certificate=way.certificate) as door,
        way.client() as http,
        http.post(f"{door.url}/v1/something?a=1", data=body) as answer,
    ):
        told = await answer.json()
    scheme = "http" if way.certificate is None else "https"
    expected = {"node": "box-1", "client": "127.0.0.1", "scheme": scheme, "got": len(body), "path": "/v1/something"}
    assert told == expected
    assert door.wanted == [Wanted("/v1/something")]


async def test_a_websocket_carries_both_ways_what_is_larger_than_every_buffer(node: FakeNode, way: Way) -> None:
    large = bytes(range(256)) * 20_000
    async with (
        open_door(node, certificate=way.certificate) as door,
        way.client() as http,
        http.ws_connect(f"{door.url}/echo", max_msg_size=0) as messages,
    ):
        for message in (b"a", large, b"z"):
            await messages.send_bytes(message)
            assert await messages.receive_bytes() == message


async def test_a_client_that_does_not_read_holds_back_its_node_and_nobody_else(node: FakeNode, way: Way) -> None:
    async with open_door(node, certificate=way.certificate) as door, way.client() as http:
        _, writer = await way.raw(door)
        writer.write(b"GET /big?bytes=50000000 HTTP/1.1\r\nHost: localhost\r\n\r\n")
        for _ in range(10):
            async with http.get(f"{door.url}/") as answer:
                assert answer.status == 200
        writer.transport.abort()


async def test_nothing_is_left_of_connections_that_are_over(node: FakeNode, way: Way) -> None:
    async with open_door(node, certificate=way.certificate) as door:

        async def visit() -> None:
            async with way.client() as http:
                async with http.get(f"{door.url}/") as answer:
                    await answer.read()
                async with http.ws_connect(f"{door.url}/echo") as messages:
                    await messages.send_bytes(b"a")
                    await messages.receive_bytes()
            _, writer = await way.raw(door)
            writer.write(b"GET / HT")
            writer.transport.abort()

        await visit()
        before = await _settled()
        for _ in range(10):
            await visit()
        assert await _settled() <= before


async def _settled() -> int:
    """Open descriptors, once their number no longer falls."""
    count = open_descriptors()
    for _ in range(40):
        await asyncio.sleep(0.01)
        count = min(count, open_descriptors())
    return count


async def test_a_head_that_takes_too_long_ends_its_connection(node: FakeNode, way: Way) -> None:
    async with open_door(node, certificate=way.certificate, head_limit_s=0.2) as door:
        reader, writer = await way.raw(door)
        writer.write(b"GET / HTTP/1.1\r\n")
        assert await _rest(reader) == b""
        writer.close()
    assert node.taken == []


async def test_a_head_of_a_megabyte_is_refused_by_the_node(node: FakeNode, way: Way) -> None:
    async with open_door(node, certificate=way.certificate) as door, way.client() as http:
        reader, writer = await way.raw(door)
        writer.write(b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * (1 << 20) + b"\r\n\r\n")
        assert b" 200 " not in await _rest(reader)  # 400, unless what is still on its way cuts it off
        writer.close()
        assert len(node.taken) == 1
        async with http.get(f"{door.url}/") as answer:
            assert answer.status == 200


@pytest.mark.parametrize("blank", [b"\r\n\r\n", b"\r\n" * 40_000, b"\n" * (MOST_BYTES - 3) + b"GET"])
async def test_blank_lines_are_no_request(node: FakeNode, way: Way, blank: bytes) -> None:
    async with open_door(node, certificate=way.certificate, head_limit_s=0.2) as door:
        reader, writer = await way.raw(door)
        writer.write(blank)
        assert await _rest(reader) == b""
        writer.close()
    assert node.taken == []


async def test_a_request_behind_blank_lines_comes_to_its_node(node: FakeNode, way: Way) -> None:
    async with open_door(node, certificate=way.certificate) as door:
        reader, writer = await way.raw(door)
        writer.write(b"\r\n\r\nGET /here HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        assert (await _rest(reader)).startswith(b"HTTP/1.1 200")
        writer.close()
    assert door.wanted == [Wanted("/here")]


@pytest.mark.parametrize("garbage", [b"\x00" * 100 + b"\r\n\r\n", b"\xff\xfe nonsense\r\n\r\n", b"GET\r\n\r\n"])
async def test_garbage_is_refused_by_the_node(node: FakeNode, way: Way, garbage: bytes) -> None:
    async with open_door(node, certificate=way.certificate) as door, way.client() as http:
        reader, writer = await way.raw(door)
        writer.write(garbage)
        assert b" 400 " in (await _rest(reader))[:30]
        writer.close()
        async with http.get(f"{door.url}/") as answer:
            assert answer.status == 200


async def test_who_speaks_no_tls_is_let_go_and_nobody_notices(node: FakeNode, tmp_path: Path) -> None:
    pair = write_pair(tmp_path)
    trust = ssl.create_default_context(cafile=pair.cert)
    way = Way(Certificate(pair.cert, pair.key), trust)
    async with open_door(node, certificate=way.certificate, head_limit_s=0.3) as door, way.client() as http:
        reader, writer = await asyncio.open_connection("localhost", door.port)
        silent, held = await asyncio.open_connection("localhost", door.port)
        writer.write(b"GET / HTTP/1.1\r\n\r\n")
        await _rest(reader)
        async with http.get(f"{door.url}/") as answer:
            assert answer.status == 200
        assert await _rest(silent) == b""
        writer.close()
        held.close()


async def test_of_who_is_gone_before_the_handshake_nothing_is_left(node: FakeNode, way: Way) -> None:
    async with open_door(node, certificate=way.certificate) as door, way.client() as http:
        before = await _settled()
        with warnings.catch_warnings(record=True) as unclosed:
            warnings.simplefilter("always", ResourceWarning)
            for _ in range(20):
                with socket.create_connection(("127.0.0.1", door.port)) as gone:
                    gone.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # a reset, not an end
            assert await _settled() <= before
        assert [str(warning.message) for warning in unclosed] == []
        async with http.get(f"{door.url}/") as answer:
            assert answer.status == 200


async def test_a_node_that_takes_nothing_is_stepped_over(node: FakeNode, way: Way) -> None:
    async with fake_node("the front itself") as own:
        node.takes_none = True
        async with (
            open_door(node, own, certificate=way.certificate) as door,
            way.client() as http,
            http.get(f"{door.url}/") as answer,
        ):
            assert (await answer.json())["node"] == "the front itself"


async def test_the_oldest_of_a_crowd_that_says_nothing_leaves(node: FakeNode, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("realtime.front.door.MOST_UNDECIDED", 3)
    async with open_door(node) as door:
        crowd = [await asyncio.open_connection("127.0.0.1", door.port) for _ in range(4)]
        assert await _rest(crowd[0][0]) == b""
        crowd[3][1].write(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert (await _rest(crowd[3][0])).startswith(b"HTTP/1.1 200")
        for _, writer in crowd:
            writer.close()


async def _rest(reader: asyncio.StreamReader) -> bytes:
    """All that is still said."""
    said = b""
    with suppress(ConnectionError):
        async with asyncio.timeout(10):
            while piece := await reader.read(1 << 16):
                said += piece
    return said
