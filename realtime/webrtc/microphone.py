"""What the user says: Opus packets as they arrive become the session's audio."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import NoReturn, TypeAlias

from realtime.media.client import MediaClient
from realtime.media.job import MediaFailed, MediaJob
from realtime.together import together
from realtime.webrtc.packet_order import PacketOrder
from realtime.webrtc.packets import AudioPacket

log = logging.getLogger(__name__)

MAX_WAITING = 100
"""Packets that the decoder has not taken: two seconds. Overflow policy: latest; what is older is history by then."""
RETRY_S = 0.5

Hear: TypeAlias = Callable[[bytes], Awaitable[None]]
"""Gets PCM16 mono at 24 kHz."""


class Microphone:
    def __init__(self, media: MediaClient) -> None:
        self._media = media
        self._order = PacketOrder()
        self._waiting: asyncio.Queue[bytes] = asyncio.Queue(MAX_WAITING)

    def arrived(self, packet: AudioPacket) -> None:
        """Never waits."""
        for payload in self._order.add(packet):
            if self._waiting.full():
                self._waiting.get_nowait()
            self._waiting.put_nowait(payload)

    async def run(self, hear: Hear) -> NoReturn:
        """Goes on when the decoder is lost: with the next one, and without what was said meanwhile."""
        while True:
            try:
                async with self._media.listen() as job:
                    await together(self._feed(job), _give(job, hear))
            except MediaFailed as failed:
                log.warning("the microphone's decoder was lost and is opened again: %s", failed.message)
            await asyncio.sleep(RETRY_S)

    async def _feed(self, job: MediaJob) -> NoReturn:
        while True:
            await job.write(await self._waiting.get())


async def _give(job: MediaJob, hear: Hear) -> None:
    async for pcm in job:
        await hear(pcm)
