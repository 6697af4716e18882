"""One client and its session: who reads, who obeys, who tells, and how it ends."""

import asyncio
import contextlib
import math
from collections.abc import Coroutine, Iterable
from typing import NoReturn

import msgspec
from aiohttp import WSCloseCode

from engines.requests import RequestFailed
from realtime.context import AppContext
from realtime.errors import SERVER, ErrorBody, Refusal, refusal
from realtime.openai_realtime import server_events
from realtime.openai_realtime.client_events import Malformed, SessionUpdate
from realtime.openai_realtime.inbox import Inbox
from realtime.openai_realtime.resync import resync
from realtime.openai_realtime.server_events import EventEncoder, Object, Resume, ServerEvent
from realtime.openai_realtime.session_config import WireSession, apply, shown_session
from realtime.openai_realtime.session_patch import SessionPatch
from realtime.openai_realtime.sound_in import SoundIn
from realtime.openai_realtime.sound_out import SoundOut
from realtime.openai_realtime.speaker import Speaker
from realtime.openai_realtime.translation import translate
from realtime.openai_realtime.understanding import Understood, understand
from realtime.openai_realtime.wire import Ended, Wire
from sessions import events
from sessions.commands import ClearPlayback, Command, CommandRefused, Configure
from sessions.voice_config import VoiceConfig
from sessions.voice_sessions import Attached

OFF_LOOP_BYTES = 256 << 10
"""Longer messages are decoded in a thread: the largest append takes some 30 ms."""
SUPERSEDED = 4409
"""Close code: the session is another connection's now. Private, beyond those of RFC 6455."""
LAST_WORD_S = 1.0
ROUND_TRIP_S = 0.4
"""Of a slow network: what a client sends so long after it was told its token, it sends knowing it."""


class Connection:
    """`speaker` plays the answers; None: their sound goes to the client as events. `patch`: what the client wants changed before
    anything else, once it knows its session."""

    def __init__(
        self,
        context: AppContext,
        wire: Wire,
        attached: Attached,
        config: WireSession,
        speaker: Speaker | None = None,
        patch: SessionPatch | None = None,
    ) -> None:
        self._context = context
        self._wire = wire
        self._attached = attached
        self._know(config)
        self._speaker = speaker
        self._patch = patch
        self._told = asyncio.Event()
        """The client has been sent its session, and the token to come back with."""
        self._told_at = math.inf
        self._inbox = Inbox()
        self._encoder = EventEncoder(attached.session_id, attached.attachment.fence.number)
        self._sound_in = SoundIn(config.config.input_format)
        self._sound_out = SoundOut()

    async def run(self) -> Ended:
        """Until one side ends it. What goes wrong inside propagates to the caller's funnel."""
        ended = Ended()
        try:
            async with asyncio.TaskGroup() as tasks:
                for work in (self._read(), self._obey(), self._tell(), self._leave_with_server(), self._until_superseded()):
                    tasks.create_task(work)
        except* Ended as group:
            ended = next(end for end in group.exceptions if isinstance(end, Ended))
        if ended.code == SUPERSEDED:
            await self._tell_superseded(ended.reason)
        return ended

    async def _read(self) -> NoReturn:
        """Always in receive(), or pings would go unanswered during long work."""
        while True:
            try:
                message = await self._wire.receive()
                self.heard_from()
                await self._inbox.put(message)
            except Refusal as refused:
                await self._refuse(refused, None)

    def heard_from(self) -> None:
        """The client has sent something, be it sound."""
        if self._context.clock() - self._told_at >= ROUND_TRIP_S and self._wire.is_delivered:
            self._attached.delivered()

    async def _obey(self) -> NoReturn:
        """One command after the other, in the order of their arrival."""
        if self._patch is not None:
            await self._told.wait()
            await self._heed(self.configure(self._patch), None)
        while True:
            message = await self._inbox.get()
            try:
                understood = await self._understand(message)
            except Malformed as malformed:
                await self._refuse(malformed.refusal, malformed.event_id)
            else:
                await self._heed(self._do(understood.wish), understood.event_id)

    async def _heed(self, wish: Coroutine[None, None, None], event_id: str | None) -> None:
        try:
            await wish
        except (Refusal, CommandRefused, RequestFailed) as failure:
            await self._refuse(refusal(failure), event_id)

    async def _understand(self, message: bytes) -> Understood:
        catalogue, limit = self._context.catalogue, self._sound_in.most_bytes(self._context.settings.max_append_bytes)
        if len(message) < OFF_LOOP_BYTES:
            return understand(message, catalogue, limit)
        return await asyncio.to_thread(understand, message, catalogue, limit)

    async def _do(self, wish: SessionUpdate | Command) -> None:
        if isinstance(wish, ClearPlayback) and self._speaker is None:
            message = "output_audio_buffer.clear: over a WebSocket the client plays for itself; stop there, and truncate the item"
            raise Refusal(message, code="unsupported", field="type")
        if isinstance(wish, SessionUpdate):
            await self.configure(wish.session)
        elif self._sound_in.is_long(wish):
            await self._handle(await asyncio.to_thread(self._sound_in.decoded, wish))
        else:
            await self._handle(self._sound_in.decoded(wish))

    async def _handle(self, commands: Iterable[Command]) -> None:
        for command in commands:
            await self._attached.handle(command)

    async def configure(self, patch: SessionPatch) -> None:
        """Raises Refusal and CommandRefused; then nothing has changed."""
        before = self._config
        self._know(apply(before, patch, self._context.catalogue))
        try:
            await self._attached.handle(Configure(self._config.config))
        except CommandRefused:
            self._know(before)
            raise
        if self._sound_in.format != self._config.config.input_format:
            await self._handle(self._sound_in.change(self._config.config.input_format))

    def _know(self, config: WireSession) -> None:
        """At once, so that whoever takes over while the client is slow to hear of a change knows of it."""
        self._config = config
        if self._attached.is_current:
            self._context.known_sessions.keep(self._attached.session, config)

    async def _tell(self) -> NoReturn:
        """Takes an event from the session only when the one before is on its way: a slow client holds back its own session."""
        async for event in self._attached.events():
            if self._speaker is not None and isinstance(event, events.AudioDelta):
                await self._speaker.play(event)
                continue
            with self._attached.session.giving(event):
                for encoded in self._sound_out.encoded(event):
                    for said in self._wire_events(encoded):
                        await self.say(said)
            await self._note(event)
        if self._attached.superseded.is_set():
            await self._until_superseded()
        raise Ended(WSCloseCode.OK, "the session has ended")

    async def _until_superseded(self) -> NoReturn:
        """Nothing waits for a client that may be long gone, least of all whoever has taken over."""
        await self._attached.superseded.wait()
        raise Ended(SUPERSEDED, "a newer connection has taken this session over")

    async def _tell_superseded(self, message: str) -> None:
        with contextlib.suppress(Ended, TimeoutError):
            async with asyncio.timeout(LAST_WORD_S):
                await self.say(server_events.Error(error=ErrorBody(message=message, code="superseded")))

    async def _note(self, event: events.Event) -> None:
        match event:
            case events.Opened() | events.Reopened():
                self._told_at = self._context.clock()
                self._told.set()
            case events.AudioDone() if self._speaker is not None:
                await self._speaker.finish(event)
            case events.ResponseDone(response):
                self._context.metrics.answered("realtime", response.status, response.timing)
                if self._speaker is not None:
                    self._speaker.forget(event)
            case _:
                pass

    def _wire_events(self, event: events.Event) -> tuple[ServerEvent, ...]:
        match event:
            case events.Opened(config):
                return (server_events.SessionCreated(session=self._shown(config), resume=self._resume()),)
            case events.Reopened(config, items, response_id):
                known = resync(items, response_id)
                return (server_events.SessionCreated(session=self._shown(config), resume=self._resume(), resync=known),)
            case events.Configured(config):
                return (server_events.SessionUpdated(session=self._shown(config), resume=self._resume()),)
            case _:
                return translate(event, f"conv_{self._attached.session_id}")

    def _shown(self, config: VoiceConfig) -> Object:
        return shown_session(msgspec.structs.replace(self._config, config=config), self._attached.session_id)

    def _resume(self) -> Resume:
        return Resume(self._attached.token, self._encoder.next_number, int(self._attached.held_until_s))

    async def _leave_with_server(self) -> NoReturn:
        await self._context.drain.wait()
        limit_s = self._context.settings.shutdown_s
        message = f"the server stops within {limit_s:g} s; connect again"
        await self.say(server_events.Error(error=ErrorBody(message=message, type=SERVER, code="server_draining")))
        raise Ended(WSCloseCode.SERVICE_RESTART, "the server is stopping")

    async def _refuse(self, refused: Refusal, event_id: str | None) -> None:
        body = refused.body
        error = ErrorBody(message=body.message, type=body.type, code=body.code, param=body.param, event_id=event_id)
        await self.say(server_events.Error(error=error))

    async def say(self, event: ServerEvent) -> None:
        """Raises Ended when the client has gone, or takes nothing any more."""
        await self._wire.send(self._encoder.encode(event))
