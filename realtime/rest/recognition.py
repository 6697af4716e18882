"""Audio into text: the part that transcriptions and chats with audio share."""

from collections.abc import AsyncIterator
from dataclasses import dataclass

from engines.messages.to_worker import ServiceClass
from engines.parameters import Activity, Parameters, Recognition
from engines.payloads import audio
from engines.requests import Request, RequestStream
from realtime.context import AppContext
from realtime.media.job import MediaJob
from realtime.rest.request_ids import new_id
from realtime.rest.stopwatch import Stopwatch
from realtime.together import together
from sessions.usage import AUDIO_IN_S

EAR_RATE_HZ = 16_000
"""What the ear models work with."""


@dataclass
class Heard:
    """What one upload turned out to be."""

    text: str = ""
    seconds: float = 0.0


def recognition_parameters(language: str = "en") -> dict[str, Parameters]:
    return {"vad": Activity(with_audio=True), "asr": Recognition(language)}


async def recognise(context: AppContext, upload: MediaJob, language: str, service_class: ServiceClass, watch: Stopwatch) -> Heard:
    """The text of a decode job whose input is complete. Raises MediaFailed when it holds no audio, RequestFailed."""
    heard = Heard()
    pieces = aiter(upload)
    first = await anext(pieces)  # before anything is opened for what may be no audio at all
    order = Request(
        request_id=new_id("transcription"),
        entry="vad",
        outputs=("transcript",),
        parameters=recognition_parameters(language),
        service_class=service_class,
    )
    async with await context.graph.submit(order) as stream:
        watch.follow(stream)
        try:
            await together(feed(stream, first, pieces, heard), _collect(stream, heard))
        finally:
            watch.usage.add(AUDIO_IN_S, heard.seconds)
    watch.transcript()
    heard.text = heard.text.strip()
    return heard


async def feed(stream: RequestStream, first: bytes, rest: AsyncIterator[bytes], heard: Heard) -> None:
    """Decoded audio into the graph, no faster than it takes it."""
    piece = first
    async for following in rest:
        await _push(stream, piece, heard, final=False)
        piece = following
    await _push(stream, piece, heard, final=True)


async def _push(stream: RequestStream, pcm: bytes, heard: Heard, *, final: bool) -> None:
    heard.seconds += len(pcm) / 2 / EAR_RATE_HZ
    await stream.push(audio(pcm, EAR_RATE_HZ), final=final)


async def _collect(stream: RequestStream, heard: Heard) -> None:
    async for delivery in stream:
        heard.text += delivery.payload.text
