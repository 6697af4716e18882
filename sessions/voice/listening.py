"""The resident request that turns a session's audio into speech probabilities."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias

import numpy as np

from engines.parameters import Activity
from engines.payloads import audio
from engines.requests import RequestFailed, RequestStream
from sessions.voice.audio_buffer import SAMPLE_RATE, AudioBuffer
from sessions.voice.events import SessionError
from sessions.voice.state import VoiceState
from sessions.voice.turns import WINDOW_MS

WINDOW_SAMPLES = SAMPLE_RATE * WINDOW_MS // 1000
PUSH_SAMPLES = SAMPLE_RATE
"""One second: keeps a large append from occupying the stage in one piece."""

Hear: TypeAlias = Callable[[int, Sequence[float]], Awaitable[None]]
"""Gets the position of the first window and one probability for each window."""


class Listener:
    """Feeds the buffer's audio from `origin` on to the vad stage; opens it again when it fails, and misses no audio. `lost`
    is told of each failure."""

    def __init__(self, state: VoiceState, buffer: AudioBuffer, hear: Hear, lost: Callable[[], None]) -> None:
        self._state = state
        self._buffer = buffer
        self._hear = hear
        self._lost = lost
        self._appended = asyncio.Event()
        self.heard = buffer.end
        """Audio up to this position has its probabilities."""

    def audio_appended(self) -> None:
        self._appended.set()

    async def run(self) -> None:
        while True:
            tried_at = self._state.clock()
            try:
                await self._listen()
                reason = "vad: ended on its own"
            except RequestFailed as failed:
                reason = str(failed)
            self._lost()
            message = f"voice activity was lost and is being opened again: {reason}"
            await self._state.emit(SessionError("voice_activity_lost", message))
            await self._wait_until(tried_at + self._state.settings.listen_retry_ms / 1000)

    async def _wait_until(self, time: float) -> None:
        """Until audio comes at `time` or later: without audio nothing needs to be heard."""
        self._appended.clear()
        await self._appended.wait()
        while self._state.clock() < time:
            self._appended.clear()
            await self._appended.wait()

    async def _listen(self) -> None:
        request = self._state.request("vad", ("activity",), {"vad": Activity()})
        async with await self._state.graph.submit(request) as stream:
            feeding = self._state.spawn(self._feed(stream))
            try:
                async for delivery in stream:
                    if "probability" in delivery.payload.arrays:
                        await self._pass_on(delivery.payload.arrays["probability"].numpy().astype(np.float64).tolist())
            finally:
                feeding.cancel()

    async def _pass_on(self, probabilities: Sequence[float]) -> None:
        first = self.heard
        self.heard += len(probabilities) * WINDOW_SAMPLES
        await self._hear(first, probabilities)

    async def _feed(self, stream: RequestStream) -> None:
        fed = self.heard
        while True:
            # Ends also when the buffer has moved on beyond `fed`: this feed is being cancelled then, and must let that happen.
            while pcm := self._buffer.between(fed, fed + PUSH_SAMPLES):
                fed += len(pcm) // 2
                await stream.push(audio(pcm, SAMPLE_RATE))
            self._appended.clear()
            await self._appended.wait()
