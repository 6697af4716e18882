"""`POST /v1/audio/transcriptions`: an audio file in, its text out."""

import re
from contextlib import AsyncExitStack

import msgspec
from aiohttp import web

from engines.messages.to_worker import ServiceClass
from realtime.context import CONTEXT
from realtime.errors import Invalid, Refusal
from realtime.guard import check_allowed
from realtime.rest.gate import admitted
from realtime.rest.media_faults import media_faults
from realtime.rest.recognition import EAR_RATE_HZ, Heard, recognise
from realtime.rest.stopwatch import measured, server_timing
from realtime.rest.upload_form import UploadForm
from realtime.rest.voices import check_model
from sessions.admission.seats import REQUEST
from sessions.voice.events import AnswerTiming

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
    with measured(request, "transcription") as watch, media_faults("file"):
        async with AsyncExitStack() as places:
            sent = UploadForm(request, lambda: places.enter_async_context(context.media.decode(EAR_RATE_HZ)))
            upload, fields = await sent.read()
            form = _checked(fields)
            watch.restart()
            check_model(context.catalogue.transcription, form.model, "transcription")
            check_allowed(request, REQUEST, form.model)
            async with admitted(request):
                heard = await recognise(context, upload, form.language, ServiceClass.BATCH, watch)
            watch.add_audio(heard.seconds)
            return _answer(form, heard, watch.timing())


def _answer(form: Form, heard: Heard, timing: AnswerTiming) -> web.Response:
    headers = {"Server-Timing": server_timing(timing)}
    if form.response_format == "text":
        return web.Response(text=f"{heard.text}\n", headers=headers)
    body = Transcription(heard.text, Duration(round(heard.seconds, 3)), timing)
    return web.Response(body=msgspec.json.encode(body), content_type="application/json", headers=headers)


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
