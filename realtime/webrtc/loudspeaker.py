"""What the user hears: the sound of answers becomes packets in the playout, each answer by an encoder of its own."""

import asyncio
import logging
from collections.abc import Callable, Sequence

from realtime.media.call_codecs import CallCodec, Voice
from realtime.media.client import MediaClient
from realtime.media.job import MediaFailed, MediaJob
from realtime.together import together
from realtime.webrtc.loudness import Loudness
from realtime.webrtc.outlet import Outlet
from realtime.webrtc.playout import Playout
from sessions.voice.events import AudioDelta, AudioDone, ResponseDone
from sessions.voice.playout import Heard, Playing, Spawn

log = logging.getLogger(__name__)

MAX_WAITING = 4
"""Pieces of sound that wait for an answer's encoder. Overflow policy: block."""


class _Voice:
    def __init__(self) -> None:
        self.sound: asyncio.Queue[bytes | None] = asyncio.Queue(MAX_WAITING)
        self.loudness = Loudness()
        self.task: asyncio.Task[None] | None = None

    def empty(self) -> None:
        """Whoever waits to give it sound gets away."""
        while not self.sound.empty():
            self.sound.get_nowait()


class Loudspeaker:
    """The playout of a session, and the speaker of the call that it is plugged into: it outlives calls, and sounds in the newest
    one, if any. There what was not heard in the one before is played again.

    `spawn` starts a task that the session owns; `dry` is told of slots without the sound that is due. What has been cleared stays
    silent: its encoder is gone, and sound that still comes of it is dropped.
    """

    def __init__(self, media: MediaClient, spawn: Spawn, dry: Callable[[], None], codec: CallCodec = "opus") -> None:
        self.codec: CallCodec = codec
        """Of all its packets; a call with another one cannot take it over."""
        self._media = media
        self._spawn = spawn
        self._playout = Playout(self._started, self._stopped, dry)
        self._outlet: Outlet | None = None
        self._voices: dict[str, _Voice] = {}
        self._unfinished: set[str] = set()
        """Answers that have begun to sound and of which more may come."""
        self._mute: set[str] = set()
        """Those among them of which nothing is wanted any more."""

    def plug(self, outlet: Outlet) -> None:
        """The call in which it sounds from now on."""
        self.detach()
        self._outlet = outlet
        outlet.playout = self._playout

    def detach(self) -> bool:
        if self._outlet is not None:
            self._outlet.playout = None
            self._playout.rewind(self._outlet.unheard_slots)
            self._outlet = None
        return True

    @property
    def has_floor(self) -> bool:
        return self._playout.has_floor

    def playing(self) -> Playing | None:
        return self._playout.playing()

    async def play(self, sound: AudioDelta) -> None:
        if sound.response_id not in self._unfinished:
            self._begin(sound.response_id, sound.item_id)
        if sound.response_id not in self._mute:
            voice = self._voices[sound.response_id]
            await voice.sound.put(sound.pcm)
            self._playout.expect(sound.response_id, voice.loudness.of(sound.pcm))

    async def finish(self, end: AudioDone) -> None:
        if end.response_id in self._unfinished and end.response_id not in self._mute:
            await self._voices[end.response_id].sound.put(None)

    def forget(self, end: ResponseDone) -> None:
        self._unfinished.discard(end.response.id)
        self._mute.discard(end.response.id)

    def hold(self) -> None:
        self._playout.hold()

    def resume(self) -> None:
        self._playout.resume()

    def clear(self) -> tuple[Heard, ...]:
        self._mute |= self._unfinished
        for voice in self._voices.values():
            voice.empty()
            if voice.task is not None:
                voice.task.cancel()
        self._voices.clear()
        return self._playout.clear()

    def levels(self) -> Sequence[float]:
        return self._playout.levels()

    def _begin(self, response_id: str, item_id: str) -> None:
        self._unfinished.add(response_id)
        self._playout.begin(response_id, item_id)
        voice = self._voices[response_id] = _Voice()
        voice.task = self._spawn(self._speak(response_id, voice))

    async def _speak(self, response_id: str, voice: _Voice) -> None:
        try:
            async with self._media.speak(self._encoded()) as job:
                await together(_feed(job, voice.sound), self._collect(job, response_id))
        except MediaFailed as failure:
            self._mute |= {response_id} & self._unfinished
            voice.empty()
            self._lost(f"the sound of response {response_id} was lost: {failure.message}")
        finally:
            self._playout.complete(response_id)
            self._voices.pop(response_id, None)

    def _encoded(self) -> Voice:
        return Voice(codec=self.codec) if self._outlet is None else self._outlet.voice()

    def _started(self, response_id: str) -> None:
        if self._outlet is not None:
            self._outlet.started(response_id)

    def _stopped(self, response_id: str) -> None:
        if self._outlet is not None:
            self._outlet.stopped(response_id)

    def _lost(self, message: str) -> None:
        log.warning("%s", message)
        if self._outlet is not None:
            self._outlet.lost(message)

    async def _collect(self, job: MediaJob, response_id: str) -> None:
        async for packet in job:
            await self._playout.put(response_id, packet)


async def _feed(job: MediaJob, sound: asyncio.Queue[bytes | None]) -> None:
    while (pcm := await sound.get()) is not None:
        await job.write(pcm)
    job.finish()
