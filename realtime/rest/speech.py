"""`POST /v1/audio/speech`: text in, audio out while it is being made."""

from typing import Annotated

import msgspec
from aiohttp import web

from engines.payloads import Payload
from engines.requests import Request, RequestStream
from realtime.blank import is_blank
from realtime.context import CONTEXT, AppContext
from realtime.errors import Invalid
from realtime.guard import check_allowed
from realtime.media.formats import CONTENT_TYPES, FORMATS, AudioFormat
from realtime.media.job import MediaJob
from realtime.rest.body import read_json
from realtime.rest.gate import admitted
from realtime.rest.media_faults import media_faults
from realtime.rest.request_ids import new_id
from realtime.rest.sending import Outgoing
from realtime.rest.stopwatch import Stopwatch, measured, server_timing
from realtime.rest.voices import RATE_HZ, Voice, VoiceField, speaking_voice
from realtime.together import together
from sessions.admission.seats import REQUEST
from sessions.usage import AUDIO_OUT_S

MAX_INPUT_CHARACTERS = 4096
"""OpenAI's limit."""


class SpeechBody(msgspec.Struct, frozen=True):
    """Without `voice` the model speaks with its first one. `instructions` are ignored, as OpenAI's own plain voices do."""

    model: str
    input: str
    voice: VoiceField | None = None
    response_format: str = "mp3"
    speed: Annotated[float, msgspec.Meta(ge=0.25, le=4.0)] = 1.0
    stream_format: str = "audio"


async def create_speech(request: web.Request) -> web.StreamResponse:
    context = request.app[CONTEXT]
    with measured(request, "speech") as watch:
        body = await read_json(request, SpeechBody)
        watch.restart()
        voice = speaking_voice(context.catalogue, body.model, body.voice)
        check_allowed(request, REQUEST, body.model)
        format = _checked(body)
        async with admitted(request):
            with media_faults("response_format"):
                return await _speak(request, context, body, voice, format, watch)


def _checked(body: SpeechBody) -> AudioFormat:
    if is_blank(body.input):
        raise Invalid("input", "text to speak", body.input)
    if len(body.input) > MAX_INPUT_CHARACTERS:
        raise Invalid("input", f"at most {MAX_INPUT_CHARACTERS} characters", f"{len(body.input)} characters")
    if body.stream_format != "audio":
        raise Invalid("stream_format", "'audio'", body.stream_format)
    return checked_format(body.response_format, "response_format")


def checked_format(wanted: str, field: str) -> AudioFormat:
    for format in FORMATS:
        if format == wanted:
            return format
    raise Invalid(field, f"one of {', '.join(FORMATS)}", wanted)


async def _speak(
    request: web.Request, context: AppContext, body: SpeechBody, voice: Voice, format: AudioFormat, watch: Stopwatch
) -> web.StreamResponse:
    order = Request(
        request_id=new_id("speech"), entry=voice.entry, outputs=(voice.output,), parameters=voice.parameters(body.speed)
    )
    outgoing = Outgoing(request, {"Content-Type": CONTENT_TYPES[format]})
    async with context.media.encode(format, RATE_HZ) as job, await context.graph.submit(order) as stream:
        watch.follow(stream)
        await stream.push(Payload(text=body.input), final=True)
        await together(_encode(stream, job, watch), _send(job, outgoing, watch))
    return await outgoing.end()


async def _encode(stream: RequestStream, job: MediaJob, watch: Stopwatch) -> None:
    samples = 0
    async for delivery in stream:
        pcm = delivery.payload.arrays.get("pcm")
        if pcm is not None and pcm.data:
            samples += len(pcm.data) // 2
            watch.add_audio(len(pcm.data) / 2 / RATE_HZ)
            watch.usage.add(AUDIO_OUT_S, len(pcm.data) / 2 / RATE_HZ)
            await job.write(bytes(pcm.data))
    if not samples:
        raise Invalid("input", "text with something that can be spoken", "text that is silent when spoken")
    job.finish()


async def _send(job: MediaJob, outgoing: Outgoing, watch: Stopwatch) -> None:
    async for data in job:
        if not outgoing.response.prepared:
            watch.audio()
            outgoing.response.headers["Server-Timing"] = server_timing(watch.timing())
        await outgoing.write(data)
