"""What the user says: packets as they arrive become the session's audio."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import NoReturn, TypeAlias

from realtime.media.call_codecs import CallCodec
from realtime.media.client import MediaClient
from realtime.media.job import MediaFailed, MediaJob
from realtime.together import together
from realtime.webrtc.codec_facts import FACTS
from realtime.webrtc.hearing import Hearing
from realtime.webrtc.jitter_buffer import JitterBuffer
from realtime.webrtc.packets import AudioPacket, Lost, Silent, Sound

log = logging.getLogger(__name__)

MAX_WAITING = 250
"""Packets that the decoder has not taken: five seconds. Overflow policy: latest; what is older is history by then."""
RETRY_S = 0.5
TIMER_GRAIN_S = 0.001
"""A timer of the loop may go off early by so much."""

Hear: TypeAlias = Callable[[bytes], Awaitable[None]]
"""Gets PCM16 mono at 24 kHz."""


class Microphone:
    """`arrived` takes packets, also before `run`. `clock` gives monotonic seconds."""

    def __init__(self, media: MediaClient, codec: CallCodec = "opus", clock: Callable[[], float] = time.monotonic) -> None:
        self._media = media
        self._codec: CallCodec = codec
        self._clock = clock
        self._buffer = JitterBuffer(FACTS[codec])
        self._waiting: asyncio.Queue[Sound] = asyncio.Queue(MAX_WAITING)
        self._timer: asyncio.TimerHandle | None = None
        self._running = False

    def arrived(self, packet: AudioPacket) -> None:
        """Never waits."""
        now_s = self._clock()
        self._put(self._buffer.add(packet, now_s))
        self._set_timer(now_s)

    def statistics(self) -> Hearing:
        return self._buffer.statistics()

    async def run(self, hear: Hear) -> NoReturn:
        """Goes on when the decoder is lost: with the next one, without what the lost one had. Of what came meanwhile it gets the
        last five seconds."""
        self._running = True
        self._set_timer(self._clock())
        try:
            while True:
                try:
                    async with self._media.listen(self._codec) as job:
                        await together(self._feed(job), _give(job, hear))
                except MediaFailed as failed:
                    log.warning("the microphone's decoder was lost and is opened again: %s", failed.message)
                await asyncio.sleep(RETRY_S)
        finally:
            self._running = False
            if self._timer is not None:
                self._timer.cancel()

    def _put(self, sounds: list[Sound]) -> None:
        for sound in sounds:
            if self._waiting.full():
                self._waiting.get_nowait()
            self._waiting.put_nowait(sound)

    def _set_timer(self, now_s: float) -> None:
        """A timer that goes off too early is left as it is, and set again then: mostly packets come before anything is due."""
        due_s = self._buffer.due_s
        if due_s is None or not self._running:
            return
        loop = asyncio.get_running_loop()
        due_at = loop.time() + due_s - now_s + TIMER_GRAIN_S
        if self._timer is not None:
            if self._timer.when() <= due_at:
                return
            self._timer.cancel()
        self._timer = loop.call_at(due_at, self._wake)

    def _wake(self) -> None:
        self._timer = None
        now_s = self._clock()
        self._put(self._buffer.wake(now_s))
        self._set_timer(now_s)

    async def _feed(self, job: MediaJob) -> NoReturn:
        while True:
            match await self._waiting.get():
                case Lost(samples):
                    await job.lose(samples)
                case Silent(samples):
                    await job.pause(samples)
                case packet:
                    await job.write(packet)


async def _give(job: MediaJob, hear: Hear) -> None:
    async for pcm in job:
        await hear(pcm)
