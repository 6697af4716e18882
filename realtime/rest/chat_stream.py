"""A chat's answer as server-sent events while it is being made."""

import base64
import time

import msgspec
from aiohttp import web
from msgspec import UNSET, UnsetType

from engines.requests import RequestFailed
from realtime.errors import refusal
from realtime.rest.chat_answer import ChatAnswer
from realtime.rest.chat_body import ChatBody
from realtime.rest.chat_records import AudioDelta, ChatChunk, ChatUsage, ChunkChoice, Delta
from realtime.rest.event_stream import EventStream
from realtime.rest.request_ids import new_id


class ChatStream:
    """Reader of a ChatAnswer. With audio the text travels as the audio's transcript, as OpenAI's API has it."""

    def __init__(self, request: web.Request, body: ChatBody, *, speaks: bool) -> None:
        self._events = EventStream(request)
        self._audio_id = new_id("audio") if speaks else None
        self._with_usage = body.stream_options is not None and body.stream_options.include_usage
        usage: UnsetType | None = None if self._with_usage else UNSET
        self._blank = ChatChunk(id=new_id("chatcmpl"), created=int(time.time()), model=body.model, choices=(), usage=usage)

    async def read(self, answer: ChatAnswer) -> None:
        try:
            async for piece in answer.pieces():
                if not self._events.started:
                    await self._begin()
                await self._send(self._delta(piece))
        except RequestFailed as failed:
            if self._events.started:
                await self._events.send({"error": refusal(failed).body})
            raise
        await self._finish(answer)

    async def end(self) -> web.StreamResponse:
        return await self._events.end()

    async def _begin(self) -> None:
        if self._audio_id is None:
            await self._send(Delta(role="assistant", content=""))
        else:
            await self._send(Delta(role="assistant", audio=AudioDelta(id=self._audio_id)))

    def _delta(self, piece: str | bytes) -> Delta:
        if isinstance(piece, bytes):
            return Delta(audio=AudioDelta(data=base64.b64encode(piece).decode()))
        if self._audio_id is not None:
            return Delta(audio=AudioDelta(transcript=piece))
        return Delta(content=piece)

    async def _finish(self, answer: ChatAnswer) -> None:
        if not self._events.started:
            await self._begin()
        if self._audio_id is not None:
            await self._send(Delta(audio=AudioDelta(expires_at=int(time.time()))))
        last = ChunkChoice(delta=Delta(), finish_reason=answer.finish_reason)
        heard = UNSET if answer.heard is None else answer.heard.strip()
        await self._events.send(
            msgspec.structs.replace(self._blank, choices=(last,), metrics=answer.watch.timing(), input_transcript=heard)
        )
        if self._with_usage:
            usage: ChatUsage = answer.usage
            await self._events.send(msgspec.structs.replace(self._blank, usage=usage))

    async def _send(self, delta: Delta) -> None:
        await self._events.send(msgspec.structs.replace(self._blank, choices=(ChunkChoice(delta=delta),)))
