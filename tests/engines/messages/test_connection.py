"""A control connection: what is heard when, who waits for whom, and that its end is told once."""

import asyncio
import gc
import os
import socket
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import asynccontextmanager

import pytest

from engines.messages import to_gateway, to_worker
from engines.messages.connection import OUTBOX_BYTES, Connection
from engines.messages.framing import MAX_FRAME_BYTES, FrameError, FrameTooLarge, frame
from engines.messages.to_gateway import Aborted
from engines.messages.to_worker import Abort, ToWorker


class Worker:
    """Answers every Abort with `answer` bytes and more."""

    def __init__(self) -> None:
        self.heard: list[str] = []
        self.losses: list[Exception | None] = []
        self.answer = 0
        self.on_message: Callable[[ToWorker], None] = lambda _: None
        self.connection = Connection(to_worker.decoder, to_gateway.encoder, self, waits_for_reader=True)
        self._moved = asyncio.Event()

    def received(self, message: ToWorker) -> None:
        assert isinstance(message, Abort)
        self._moved.set()
        self.heard.append(message.request_id)
        self.on_message(message)
        if self.answer:
            self.connection.send(Aborted("x" * self.answer))

    def lost(self, reason: Exception | None) -> None:
        self._moved.set()
        self.losses.append(reason)

    async def hears(self, count: int) -> None:
        await self.until(lambda: len(self.heard) >= count)

    async def loses(self) -> None:
        await self.until(lambda: bool(self.losses))

    async def until(self, holds: Callable[[], bool]) -> None:
        while not holds():
            self._moved.clear()
            await self._moved.wait()


def aborts(count: int, first: int = 0) -> bytes:
    return b"".join(frame(to_worker.encoder.encode(Abort(str(number)))) for number in range(first, first + count))


@asynccontextmanager
async def connected() -> AsyncGenerator[tuple[Worker, socket.socket]]:
    near, far = socket.socketpair()
    far.setblocking(False)
    worker = Worker()
    await asyncio.get_running_loop().create_connection(lambda: worker.connection, sock=near)
    with far:
        yield worker, far
        worker.connection.close()
        await worker.loses()
    assert len(worker.losses) == 1


async def test_messages_are_heard_in_order_and_by_no_task() -> None:
    async with connected() as (worker, peer):
        names: set[str] = set()
        worker.on_message = lambda _: names.add(str(asyncio.current_task()))
        peer.send(aborts(100))
        await worker.hears(100)
        assert worker.heard == [str(number) for number in range(100)]
        assert names == {"None"}


async def test_an_end_between_frames_is_no_error_and_nothing_can_be_sent_after_it() -> None:
    async with connected() as (worker, peer):
        peer.send(aborts(3))
        peer.close()
        await worker.loses()
        assert (worker.heard, worker.losses) == (["0", "1", "2"], [None])
        worker.connection.send(Aborted("r"))
        await worker.connection.room()


@pytest.mark.parametrize("bytes_of_it", range(1, len(aborts(1))))
async def test_an_end_inside_a_frame_is_one(bytes_of_it: int) -> None:
    async with connected() as (worker, peer):
        peer.send(aborts(2) + aborts(1)[:bytes_of_it])
        peer.close()
        await worker.loses()
        assert worker.heard == ["0", "1"]
        assert isinstance(worker.losses[0], FrameError)
        assert "connection cut inside a frame" in str(worker.losses[0])


async def test_an_end_that_only_shuts_the_peers_sending_side_is_an_end() -> None:
    async with connected() as (worker, peer):
        peer.shutdown(socket.SHUT_WR)
        await worker.loses()
        assert await asyncio.get_running_loop().sock_recv(peer, 1) == b""


@pytest.mark.parametrize("nonsense", [frame(b"\xc1"), (MAX_FRAME_BYTES + 1).to_bytes(4, "big"), b"GET / HTTP/1.1\r\n\r\n"])
async def test_nothing_is_heard_after_nonsense(nonsense: bytes) -> None:
    async with connected() as (worker, peer):
        peer.send(aborts(2) + nonsense + aborts(2))
        await worker.loses()
        assert worker.heard == ["0", "1"]
        assert isinstance(worker.losses[0], FrameError)
        assert await asyncio.get_running_loop().sock_recv(peer, 1) == b""


async def test_a_listener_that_raises_ends_its_own_connection() -> None:
    def fail(message: ToWorker) -> None:
        raise KeyError("a bug")

    async with connected() as (worker, peer), connected() as (bystander, other):
        worker.on_message = fail
        peer.send(aborts(2))
        await worker.loses()
        assert worker.heard == ["0"]
        assert isinstance(worker.losses[0], KeyError)
        other.send(aborts(1))
        await bystander.hears(1)


async def test_closing_while_hearing_hears_no_more() -> None:
    async with connected() as (worker, peer):
        worker.on_message = lambda _: worker.connection.close()
        peer.send(aborts(3))
        await worker.loses()
        assert worker.heard == ["0"]
        worker.connection.close(ValueError("too late to be the reason"))
        assert worker.losses == [None]


async def test_held_bytes_wait_and_come_in_order() -> None:
    async with connected() as (worker, peer):
        worker.on_message = lambda message: worker.connection.hold() if message == Abort("2") else None
        peer.send(aborts(5))
        await worker.hears(3)
        peer.send(aborts(5, first=5))
        for _ in range(10):
            await asyncio.sleep(0)
        assert worker.heard == ["0", "1", "2"]
        worker.connection.release()
        assert worker.heard == ["0", "1", "2", "3", "4"]
        await worker.hears(10)
        assert worker.heard == [str(number) for number in range(10)]


async def test_a_peer_that_does_not_read_is_not_read_and_what_waits_for_it_is_bounded() -> None:
    """Two hundred times the outbox would be owed, were it all heard."""
    async with connected() as (worker, peer):
        worker.answer = OUTBOX_BYTES // 10
        writing = asyncio.create_task(asyncio.get_running_loop().sock_sendall(peer, aborts(2000)))
        await worker.until(lambda: worker.connection.unread_bytes > OUTBOX_BYTES)
        for _ in range(100):
            await asyncio.sleep(0)
        assert len(worker.heard) < 40
        assert worker.connection.unread_bytes < 2 * OUTBOX_BYTES
        waiting = asyncio.create_task(worker.connection.room())
        await asyncio.sleep(0)
        assert not waiting.done()
        while len(worker.heard) < 2000:
            await asyncio.get_running_loop().sock_recv(peer, 1 << 20)
        await writing
        assert worker.heard == [str(number) for number in range(2000)]
        await waiting


async def test_the_loss_of_a_peer_that_does_not_read_is_noticed() -> None:
    async with connected() as (worker, peer):
        worker.connection.send(Aborted("x" * (8 * OUTBOX_BYTES)))
        waiting = asyncio.create_task(worker.connection.room())
        await asyncio.sleep(0)
        peer.close()
        await worker.loses()
        await waiting


async def test_what_fits_no_frame_is_not_sent_and_the_connection_goes_on() -> None:
    async with connected() as (worker, peer):
        with pytest.raises(FrameTooLarge):
            worker.connection.send(Aborted("x" * MAX_FRAME_BYTES))
        worker.connection.send(Aborted("r"))
        framed = frame(to_gateway.encoder.encode(Aborted("r")))
        assert await asyncio.get_running_loop().sock_recv(peer, 100) == framed


class Written(asyncio.Transport):
    """A transport that takes note of each write."""

    def __init__(self) -> None:
        super().__init__()
        self.writes: list[int] = []
        """How many frames there were in each."""

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.writes.append(1)

    def writelines(self, list_of_data: Iterable[bytes | bytearray | memoryview]) -> None:
        self.writes.append(len(list(list_of_data)))

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None: ...


@pytest.mark.parametrize(("first_at_once", "writes"), [(True, [1, 3]), (False, [4])])
async def test_what_is_sent_in_one_turn_goes_out_together(first_at_once: bool, writes: list[int]) -> None:
    connection, transport = Connection(to_worker.decoder, to_gateway.encoder, Worker(), first_at_once=first_at_once), Written()
    connection.connection_made(transport)
    for _ in range(4):
        connection.send(Aborted("r"))
    assert transport.writes == writes[:-1]
    await asyncio.sleep(0)
    assert transport.writes == writes
    connection.send(Aborted("r"))
    await asyncio.sleep(0)
    assert transport.writes == [*writes, 1]


async def test_a_turn_in_which_much_is_sent_does_not_hold_it_all() -> None:
    connection, transport = Connection(to_worker.decoder, to_gateway.encoder, Worker()), Written()
    connection.connection_made(transport)
    for _ in range(20):
        connection.send(Aborted("x" * (OUTBOX_BYTES // 4)))
    assert transport.writes == [4, 4, 4, 4, 4]


async def test_the_largest_message_goes_through_whole() -> None:
    text = "x" * (MAX_FRAME_BYTES - 100)
    async with connected() as (worker, peer):
        await asyncio.get_running_loop().sock_sendall(peer, frame(to_worker.encoder.encode(Abort(text))))
        await worker.hears(1)
        assert worker.heard == [text]


async def test_a_thousand_connections_leave_nothing() -> None:
    async def once(number: int) -> None:
        async with connected() as (worker, peer):
            if number % 3:
                peer.send(aborts(2) + aborts(1)[: number % 7])
            if number % 2:
                peer.close()
                await worker.loses()

    await once(0)
    before = held()
    for number in range(1000):
        await once(number)
    assert held() == before


def held() -> tuple[int, int, int]:
    """Descriptors, tasks, connections."""
    gc.collect()
    connections = sum(issubclass(type(thing), Connection) for thing in gc.get_objects())  # isinstance asks foreign objects
    return len(os.listdir("/proc/self/fd")), len(asyncio.all_tasks()), connections
