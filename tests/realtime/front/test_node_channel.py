"""The channel between the front and a node."""

import asyncio
import socket

import pytest

from fakes.front_nodes import open_descriptors
from realtime.front.channel import Channel, channel_pair


class Heard:
    def __init__(self) -> None:
        self.messages: asyncio.Queue[tuple[bytes, socket.socket | None]] = asyncio.Queue()
        self.ended = asyncio.Event()

    def channel(self, end: socket.socket) -> Channel:
        return Channel(end, lambda message, connection: self.messages.put_nowait((message, connection)), self.ended.set)


async def test_messages_arrive_whole_and_in_order_some_with_a_connection() -> None:
    heard, (ours, theirs) = Heard(), channel_pair()
    front, node = Heard().channel(ours), heard.channel(theirs)
    a, b = socket.socketpair()
    with a, b:
        front.send(b"first")
        front.send(b"second", b)
        front.send(b"third")
    assert await heard.messages.get() == (b"first", None)
    message, connection = await heard.messages.get()
    assert message == b"second"
    assert connection is not None
    assert not connection.get_inheritable()
    connection.close()
    assert await heard.messages.get() == (b"third", None)
    front.close()
    await heard.ended.wait()
    node.close()


async def test_a_side_that_reads_nothing_is_noticed_by_the_sender_at_once() -> None:
    ours, theirs = channel_pair()
    front = Heard().channel(ours)
    with theirs, pytest.raises(BlockingIOError):
        _send_for_ever(front)
    front.close()


def _send_for_ever(channel: Channel) -> None:
    while True:
        channel.send(b"are you there?")


async def test_a_side_that_has_gone_is_an_error_for_the_sender() -> None:
    ours, theirs = channel_pair()
    front = Heard().channel(ours)
    theirs.close()
    with pytest.raises(OSError):  # noqa: PT011 (which one is the kernel's choice)
        front.send(b"are you there?")
    front.close()


async def test_connections_that_nobody_took_are_closed_with_the_channel() -> None:
    before = open_descriptors()
    ours, theirs = channel_pair()
    front = Heard().channel(ours)
    a, b = socket.socketpair()
    front.send(b"for you", b)
    b.close()
    theirs.close()
    assert await asyncio.get_running_loop().run_in_executor(None, a.recv, 1) == b""
    a.close()
    front.close()
    assert open_descriptors() <= before
