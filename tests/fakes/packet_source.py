"""What a peer is to send: packets that a test hands over, each sent at once."""

import asyncio

from realtime.webrtc.packets import Outgoing


class FakePacketSource:
    def __init__(self) -> None:
        self.packets: asyncio.Queue[Outgoing] = asyncio.Queue()
        self.asked = asyncio.Event()

    def put(self, *packets: Outgoing) -> None:
        for packet in packets:
            self.packets.put_nowait(packet)

    async def next(self) -> Outgoing:
        self.asked.set()
        return await self.packets.get()
