"""`POST /v1/chat/completions`: text or speech in, text and speech out, whole or streamed."""

import base64
import time

import msgspec
from aiohttp import web
from msgspec import UNSET

from realtime.context import CONTEXT, AppContext
from realtime.guard import check_allowed
from realtime.media.job import MediaJob
from realtime.rest.body import read_json
from realtime.rest.chat_answer import ChatAnswer, answer_chat
from realtime.rest.chat_body import ChatBody, SpokenAnswer, check, spoken_answer
from realtime.rest.chat_records import AnswerMessage, AudioAnswer, ChatCompletion, Choice
from realtime.rest.chat_stream import ChatStream
from realtime.rest.conversation import conversation
from realtime.rest.gate import admitted
from realtime.rest.media_faults import media_faults
from realtime.rest.request_ids import new_id
from realtime.rest.stopwatch import Stopwatch, measured, server_timing
from realtime.rest.voices import RATE_HZ, check_model
from realtime.together import together
from sessions.admission.seats import REQUEST


async def create_chat_completion(request: web.Request) -> web.StreamResponse:
    context = request.app[CONTEXT]
    with measured(request, "chat") as watch:
        body = await read_json(request, ChatBody)
        watch.restart()
        check_model(context.catalogue.chat, body.model, "chat")
        check_allowed(request, REQUEST, body.model)
        check(body)
        spoken = spoken_answer(body, context.catalogue)
        async with admitted(request):
            talk = await conversation(context, body.messages, watch)
            if body.stream:
                stream = ChatStream(request, body, speaks=spoken is not None)
                await answer_chat(context, body, talk, spoken, watch, stream.read)
                return await stream.end()
            whole = WholeAnswer(context, spoken)
            await answer_chat(context, body, talk, spoken, watch, whole.read)
            return whole.response(body.model, watch)


class WholeAnswer:
    """Reader of a ChatAnswer that keeps it all, its speech already encoded."""

    def __init__(self, context: AppContext, spoken: SpokenAnswer | None) -> None:
        self._context = context
        self._spoken = spoken
        self._answer: ChatAnswer | None = None
        self._audio = bytearray()

    async def read(self, answer: ChatAnswer) -> None:
        self._answer = answer
        if self._spoken is None:
            async for _ in answer.pieces():
                pass
            return
        with media_faults("audio.format"):
            async with self._context.media.encode(self._spoken.format, RATE_HZ) as job:
                await together(self._encode(answer, job), self._keep(job))

    async def _encode(self, answer: ChatAnswer, job: MediaJob) -> None:
        async for piece in answer.pieces():
            if isinstance(piece, bytes):
                await job.write(piece)
        job.finish()

    async def _keep(self, job: MediaJob) -> None:
        async for data in job:
            self._audio += data

    def response(self, model: str, watch: Stopwatch) -> web.Response:
        answer = self._answer
        if answer is None:
            raise RuntimeError("response() comes after read()")
        timing = watch.timing()
        completion = ChatCompletion(
            id=new_id("chatcmpl"),
            created=int(time.time()),
            model=model,
            choices=(Choice(message=self._message(answer.text), finish_reason=answer.finish_reason),),
            usage=answer.usage,
            metrics=timing,
            input_transcript=UNSET if answer.heard is None else answer.heard.strip(),
        )
        headers = {"Server-Timing": server_timing(timing)}
        return web.Response(body=msgspec.json.encode(completion), content_type="application/json", headers=headers)

    def _message(self, text: str) -> AnswerMessage:
        if self._spoken is None:
            return AnswerMessage(content=text)
        data = base64.b64encode(self._audio).decode()
        audio = AudioAnswer(id=new_id("audio"), data=data, transcript=text, expires_at=int(time.time()))
        return AnswerMessage(content=None, audio=audio)
