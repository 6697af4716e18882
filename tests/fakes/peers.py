"""A peer with ears of the test's own: what it receives is kept and can be waited for."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

from fakes.packet_source import FakePacketSource
from realtime.webrtc.packets import AudioPacket
from realtime.webrtc.peer import Peer
from realtime.webrtc.settings import WebRtcSettings


class Heard:
    def __init__(self) -> None:
        self.packets: list[AudioPacket] = []
        self.messages: list[str | bytes] = []
        self._news = asyncio.Event()

    def packet_arrived(self, packet: AudioPacket) -> None:
        self.packets.append(packet)
        self._news.set()

    def message_arrived(self, message: str | bytes) -> None:
        self.messages.append(message)
        self._news.set()

    async def until(self, condition: Callable[[], bool]) -> None:
        while not condition():
            self._news.clear()
            await self._news.wait()


@asynccontextmanager
async def open_peer(settings: WebRtcSettings | None = None) -> AsyncGenerator[tuple[Peer, FakePacketSource, Heard]]:
    source, heard = FakePacketSource(), Heard()
    peer = Peer(settings or WebRtcSettings(), source, heard.packet_arrived, heard.message_arrived)
    try:
        yield peer, source, heard
    finally:
        await peer.close()
