"""A chat's answer as server-sent events while it is being made."""

import base64
import time

from aiohttp import web
from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from engines.requests import RequestFailed
from realtime.errors import refusal
from realtime.rest.chat_answer import ChatAnswer
from realtime.rest.chat_body import ChatBody
from realtime.rest.chat_records import AudioDelta, ChatChunk, ChunkChoice, Delta
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
                await self._send(*self._opening(), self._delta(piece))
        except RequestFailed as failed:
            if self._events.started:
                await self._events.send({"error": refusal(failed).body})
            raise
        await self._finish(answer)

    async def end(self) -> web.StreamResponse:
        return await self._events.end()

    def _opening(self) -> tuple[Delta, ...]:
        if self._events.started:
            return ()
        if self._audio_id is None:
            return (Delta(role="assistant", content=""),)
        return (Delta(role="assistant", audio=AudioDelta(id=self._audio_id)),)

    def _delta(self, piece: str | bytes) -> Delta:
        if isinstance(piece, bytes):
            return Delta(audio=AudioDelta(data=base64.b64encode(piece).decode()))
        if self._audio_id is not None:
            return Delta(audio=AudioDelta(transcript=piece))
        return Delta(content=piece)

    async def _finish(self, answer: ChatAnswer) -> None:
        ends = () if self._audio_id is None else (Delta(audio=AudioDelta(expires_at=int(time.time()))),)
        events = [self._chunk(delta) for delta in (*self._opening(), *ends)]
        last = ChunkChoice(delta=Delta(), finish_reason=answer.finish_reason)
        heard = UNSET if answer.heard is None else answer.heard.strip()
        events.append(replace(self._blank, choices=(last,), metrics=answer.watch.timing(), input_transcript=heard))
        if self._with_usage:
            events.append(replace(self._blank, usage=answer.usage))
        await self._events.send(*events)

    async def _send(self, *deltas: Delta) -> None:
        await self._events.send(*map(self._chunk, deltas))

    def _chunk(self, delta: Delta) -> ChatChunk:
        return replace(self._blank, choices=(ChunkChoice(delta=delta),))
