"""What was said in a stretch of audio."""

import asyncio
from collections.abc import Mapping

import msgspec

from engines.parameters import Activity, Recognition
from engines.payloads import audio
from engines.requests import RequestFailed, StageTiming
from sessions.voice.audio_buffer import SAMPLE_RATE, SAMPLES_PER_MS
from sessions.voice.state import VoiceState


class Transcript(msgspec.Struct, frozen=True):
    """`known_at` is the clock's time. `text` is empty when nothing was said."""

    text: str
    audio_seconds: float
    known_at: float
    stages: Mapping[str, StageTiming]


class Recogniser:
    """One recognition under way. `outcome` may be awaited by several."""

    def __init__(self, state: VoiceState, pcm: bytes, *, speech_only: bool) -> None:
        self._task = state.spawn(recognise(state, pcm, speech_only=speech_only))

    async def outcome(self) -> Transcript | RequestFailed:
        await asyncio.wait({self._task})
        return self._task.result()

    def cancel(self) -> None:
        self._task.cancel()


async def recognise(state: VoiceState, pcm: bytes, *, speech_only: bool) -> Transcript | RequestFailed:
    """As `transcribe`, with the failure as a value."""
    try:
        return await transcribe(state, pcm, speech_only=speech_only)
    except RequestFailed as failed:
        return failed


async def transcribe(state: VoiceState, pcm: bytes, *, speech_only: bool) -> Transcript:
    """`speech_only`: voice activity has heard speech in all of it. Else, and when it is longer than the recogniser
    hears at once, the vad stage picks the speech out. Raises RequestFailed."""
    duration_ms = len(pcm) / 2 / SAMPLES_PER_MS
    if speech_only and duration_ms <= state.settings.recognition_segment_ms:
        request = state.request("asr", ("transcript",), {"asr": Recognition()})
    else:
        request = state.request("vad", ("transcript",), {"vad": Activity(with_audio=True), "asr": Recognition()})
    async with state.recognising, await state.graph.submit(request) as stream:
        await stream.push(audio(pcm, SAMPLE_RATE), final=True)
        text = "".join([delivery.payload.text async for delivery in stream])
        return Transcript(text.strip(), duration_ms / 1000, state.clock(), stream.timing())
