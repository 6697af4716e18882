"""`POST /v1/audio/transcriptions`: an audio file in, its text out."""

import re

import msgspec
from aiohttp import BodyPartReader, web
from aiohttp.http import HttpProcessingError

from engines.messages.to_worker import ServiceClass
from realtime.context import CONTEXT
from realtime.errors import Invalid, Refusal
from realtime.media.job import MediaJob
from realtime.rest.media_faults import media_faults
from realtime.rest.recognition import EAR_RATE_HZ, Heard, recognise
from realtime.rest.stopwatch import measured, server_timing
from realtime.rest.voices import check_model
from sessions.events import AnswerTiming

READ_BYTES = 64 << 10
MAX_FIELD_BYTES = 64 << 10
RESPONSE_FORMATS = ("json", "text")


class Form(msgspec.Struct, frozen=True):
    """Fields that nothing here can honour, such as `prompt`, are ignored."""

    model: str
    language: str = "en"
    response_format: str = "json"
    stream: str = "false"


class Duration(msgspec.Struct, frozen=True):
    seconds: float
    type: str = "duration"


class Transcription(msgspec.Struct, frozen=True):
    text: str
    usage: Duration
    metrics: AnswerTiming


async def create_transcription(request: web.Request) -> web.StreamResponse:
    context = request.app[CONTEXT]
    with measured(context, "transcription") as watch, media_faults("file"):
        async with context.media.decode(EAR_RATE_HZ) as upload:
            form = await _read_form(request, upload)
            watch.restart()
            check_model(context.catalogue.transcription, form.model, "transcription")
            heard = await recognise(context, upload, form.language, ServiceClass.BATCH, watch)
            watch.add_audio(heard.seconds)
            return _answer(form, heard, watch.timing())


def _answer(form: Form, heard: Heard, timing: AnswerTiming) -> web.Response:
    headers = {"Server-Timing": server_timing(timing)}
    if form.response_format == "text":
        return web.Response(text=f"{heard.text}\n", headers=headers)
    body = Transcription(heard.text, Duration(round(heard.seconds, 3)), timing)
    return web.Response(body=msgspec.json.encode(body), content_type="application/json", headers=headers)


async def _read_form(request: web.Request, upload: MediaJob) -> Form:
    """The fields; the file goes on to the media worker as it arrives."""
    if request.content_type != "multipart/form-data":
        raise Refusal(f"body: expected multipart/form-data, got {request.content_type}", code="invalid_content_type")
    fields: dict[str, str] = {}
    has_file = False
    try:
        async for part in await request.multipart():
            if not isinstance(part, BodyPartReader):
                continue
            if part.name == "file" and not has_file:
                has_file = True
                await _pass_on(part, upload, request.app[CONTEXT].settings.max_body_bytes)
            elif part.name:
                fields[part.name] = await _field(part)
    except (ValueError, HttpProcessingError) as broken:
        raise Refusal(f"body: expected multipart/form-data, got something broken ({broken})", code="invalid_body") from broken
    if not has_file:
        raise Refusal("file: expected an audio file, got none", code="missing_required_parameter", field="file")
    upload.finish()
    return _checked(fields)


async def _pass_on(part: BodyPartReader, upload: MediaJob, limit_bytes: int) -> None:
    size = 0
    while data := await part.read_chunk(READ_BYTES):
        size += len(data)
        if size > limit_bytes:
            message = f"file: expected at most {limit_bytes} bytes, got more"
            raise Refusal(message, status=413, code="file_too_large", field="file")
        await upload.write(data)


async def _field(part: BodyPartReader) -> str:
    data = bytearray()
    while piece := await part.read_chunk(READ_BYTES):
        data += piece
        if len(data) > MAX_FIELD_BYTES:
            raise Invalid(part.name or "body", f"at most {MAX_FIELD_BYTES} bytes", f"{len(data)} bytes and more")
    return data.decode()


def _checked(fields: dict[str, str]) -> Form:
    if not fields.get("model"):
        raise Refusal("model: expected a value, got none", code="missing_required_parameter", field="model")
    form = msgspec.convert(fields, Form)
    if form.response_format not in RESPONSE_FORMATS:
        raise Invalid("response_format", f"one of {', '.join(RESPONSE_FORMATS)}", form.response_format)
    if not re.fullmatch("[a-z]{2}", form.language):
        raise Invalid("language", "an ISO 639-1 code such as 'en'", form.language)
    if form.stream != "false":
        raise Invalid("stream", "'false'", form.stream)
    return form
