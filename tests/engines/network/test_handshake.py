"""The secret between hosts, and the door that asks for it."""

import asyncio
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, closing, suppress

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engines.network.addresses import TcpAddress
from engines.network.door import MOST_GUESTS, Door, Host, listening
from engines.network.handshake import FULL, MAGIC, DoorFull, HandshakeFailed, Purpose, dial, introduce
from engines.network.raw_connection import RawConnection

SECRET = b"sixteen bytes or more"


async def say_hello(connection: RawConnection) -> None:
    await connection.send(b"hello")


@asynccontextmanager
async def door(secret: bytes = SECRET, host: Host = say_hello) -> AsyncGenerator[tuple[TcpAddress, "asyncio.Queue[str]"]]:
    """Where it is, and what it reports."""
    faults: asyncio.Queue[str] = asyncio.Queue()
    listener = listening(TcpAddress("127.0.0.1", 0), secret)
    running = asyncio.create_task(Door(listener, secret, {Purpose.CONTROL: host}, faults.put_nowait).run())
    with listener:
        try:
            yield TcpAddress("127.0.0.1", listener.getsockname()[1]), faults
        finally:
            running.cancel()
            with suppress(asyncio.CancelledError):
                await running


async def greeted(place: TcpAddress, secret: bytes = SECRET) -> bytes:
    with closing(await dial(place, secret, Purpose.CONTROL)) as connection:
        return await connection.read(5)


async def test_who_knows_the_secret_comes_in() -> None:
    async with door() as (place, faults):
        assert await greeted(place) == b"hello"
        assert faults.empty()


async def test_without_a_secret_on_both_sides_the_handshake_still_tells_ours_from_others() -> None:
    async with door(b"") as (place, faults):
        assert await greeted(place, b"") == b"hello"
        with pytest.raises(HandshakeFailed):
            await greeted(place)
        assert "another secret" in await faults.get()


async def test_another_secret_is_told_on_both_sides() -> None:
    async with door() as (place, faults):
        with pytest.raises(HandshakeFailed, match="it has another secret"):
            await greeted(place, b"some other sixteen bytes")
        assert "another secret" in await faults.get()
        assert await greeted(place) == b"hello"


async def test_what_nobody_serves_is_refused() -> None:
    async with door() as (place, faults):
        with closing(await dial(place, SECRET, Purpose.PAYLOADS)) as connection, pytest.raises(ConnectionError):
            await connection.read(1)
        assert "came for payloads" in await faults.get()


@pytest.mark.parametrize(
    ("said", "message"),
    [
        (MAGIC + bytes(32) + bytes(32), "does not know the secret"),
        (b"SSH-2.0-OpenSSH_9.2p1 Debian, and so on and so on", "is this a worker's port"),
    ],
)
async def test_who_does_not_know_the_secret_is_no_server_of_ours(said: bytes, message: str) -> None:
    def speak(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(said)
        writer.close()

    server = await asyncio.start_server(speak, "127.0.0.1", 0)
    async with server:
        with pytest.raises(HandshakeFailed, match=message):
            await greeted(TcpAddress("127.0.0.1", server.sockets[0].getsockname()[1]))


async def test_a_proof_cannot_be_used_again() -> None:
    """What a client sent once, recorded and sent to the same door."""
    recorded = bytearray()
    async with door() as (place, faults):
        reader, writer = await asyncio.open_connection(place.host, place.port)

        class Recorder(RawConnection):
            async def read(self, nbytes: int) -> bytes:
                return await reader.readexactly(nbytes)

            async def send(self, data: memoryview | bytes) -> None:
                recorded.extend(data)
                writer.write(data)

        with socket.socket() as unused:
            await introduce(Recorder(unused), SECRET, Purpose.CONTROL)
        writer.close()
        with closing(await RawConnection.open(place)) as replaying:
            await replaying.read(len(MAGIC) + 32)
            await replaying.send(bytes(recorded))
            with pytest.raises(ConnectionError):
                await replaying.read(1)
        assert "another secret" in await faults.get()


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(noise=st.binary(max_size=200))
async def test_noise_at_the_door_disturbs_nobody(noise: bytes) -> None:
    async with door() as (place, faults):
        with closing(await RawConnection.open(place)) as stranger:
            await stranger.send(noise)
            stranger.socket.shutdown(socket.SHUT_WR)
            assert "dropped" in await faults.get()
        assert await greeted(place) == b"hello"


async def test_who_says_nothing_is_left_and_holds_up_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engines.network.handshake.HANDSHAKE_LIMIT_S", 0.2)
    async with door() as (place, faults):
        with closing(await RawConnection.open(place)):
            assert await greeted(place) == b"hello"
            assert "took too long" in await faults.get()


async def test_a_crowd_at_the_door_keeps_nobody_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """The oldest of those that say nothing leaves, and hears why."""
    monkeypatch.setattr("engines.network.door.MAX_KNOCKING", 2)
    async with door() as (place, faults):
        crowd = [await RawConnection.open(place) for _ in range(3)]
        assert "too many" in await faults.get()
        assert await greeted(place) == b"hello"
        for turned_away in crowd[:2]:
            assert (await turned_away.read(len(MAGIC) + 32 + len(FULL))).endswith(FULL)
        for stranger in crowd:
            stranger.close()


async def test_a_crowd_from_elsewhere_does_not_push_anybody_away(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even who is slow, and came first."""
    monkeypatch.setattr("engines.network.door.MAX_KNOCKING", 4)
    async with door() as (place, faults):
        slow = await RawConnection.open(place)
        crowd: list[socket.socket] = []
        for _ in range(9):
            crowd.append(socket.create_connection((place.host, place.port), source_address=("127.0.0.9", 0)))
        for _ in range(6):
            assert "too many" in await faults.get()
        await introduce(slow, SECRET, Purpose.CONTROL)
        assert await slow.read(5) == b"hello"
        for connection in (slow, *crowd):
            connection.close()


async def test_more_guests_than_there_is_room_for_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(MOST_GUESTS, Purpose.CONTROL, 1)

    async def stay(connection: RawConnection) -> None:
        await connection.send(b"hello")
        await connection.read(1)

    async with door(host=stay) as (place, faults):
        with closing(await dial(place, SECRET, Purpose.CONTROL)) as guest:
            await guest.read(5)
            with pytest.raises(DoorFull):
                await greeted(place)
            assert "1 are connected for control, which is the most" in await faults.get()


async def test_what_a_host_raises_ends_that_connection_only() -> None:
    async def stumble(connection: RawConnection) -> None:
        if await connection.read(1) == b"!":
            raise RecursionError("too deep")
        await connection.send(b"hello")

    async def said(byte: bytes) -> bytes:
        with closing(await dial(place, SECRET, Purpose.CONTROL)) as connection:
            await connection.send(byte)
            return await connection.read(5)

    async with door(host=stumble) as (place, faults):
        with pytest.raises(ConnectionError):
            await said(b"!")
        assert await faults.get() == "a connection was dropped: RecursionError: too deep"
        assert await said(b".") == b"hello"


def test_others_may_not_connect_without_a_secret() -> None:
    with pytest.raises(ValueError, match="secret_file: expected a file with a secret"):
        listening(TcpAddress("0.0.0.0", 0), b"")


def test_an_address_that_is_taken_is_named() -> None:
    with listening(TcpAddress("127.0.0.1", 0), b"") as taken:
        port = taken.getsockname()[1]
        with pytest.raises(OSError, match=f"tcp://127.0.0.1:{port} cannot be listened on"):
            listening(TcpAddress("127.0.0.1", port), b"")
