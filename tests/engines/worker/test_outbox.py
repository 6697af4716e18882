"""What waits for a gateway that does not read is bounded."""

import asyncio
import socket

from engines.messages import to_gateway
from engines.messages.framing import FrameReader
from engines.messages.to_gateway import Aborted
from engines.worker.outbox import ROOM_MESSAGES, Outbox


async def test_order_is_kept() -> None:
    near, far = socket.socketpair()
    _, writer = await asyncio.open_connection(sock=near)
    reader, other = await asyncio.open_connection(sock=far)
    outbox = Outbox()
    writing = asyncio.create_task(outbox.write_to(writer))
    for number in range(3):
        outbox.send(Aborted(str(number)))
    frames = FrameReader(reader, to_gateway.decoder)
    assert [await frames.next() for _ in range(3)] == [Aborted("0"), Aborted("1"), Aborted("2")]
    writing.cancel()
    for end in (writer, other):
        end.close()
        await end.wait_closed()


async def test_a_full_outbox_has_no_room_until_it_is_written() -> None:
    near, far = socket.socketpair()
    _, writer = await asyncio.open_connection(sock=near)
    outbox = Outbox()
    for number in range(ROOM_MESSAGES - 1):
        outbox.send(Aborted(str(number)))
    await outbox.room()
    outbox.send(Aborted("last"))
    waiting = asyncio.create_task(outbox.room())
    await asyncio.sleep(0)
    assert not waiting.done()
    writing = asyncio.create_task(outbox.write_to(writer))
    await waiting
    writing.cancel()
    writer.close()
    far.close()
    await writer.wait_closed()
