"""One client and its session: who reads, who obeys, who tells, and how it ends."""

import asyncio
import contextlib
import math
from collections import deque
from collections.abc import Coroutine, Iterable, Sequence
from typing import NoReturn

import msgspec
from aiohttp import WSCloseCode

from engines.requests import RequestFailed
from realtime.context import AppContext
from realtime.errors import SERVER, ErrorBody, Refusal, refusal
from realtime.openai_realtime import server_events
from realtime.openai_realtime.client_events import Malformed, SessionUpdate
from realtime.openai_realtime.inbox import Inbox
from realtime.openai_realtime.server_events import EventEncoder, ServerEvent
from realtime.openai_realtime.session_config import apply
from realtime.openai_realtime.session_patch import SessionPatch
from realtime.openai_realtime.sound_in import SoundIn
from realtime.openai_realtime.speaker import Speaker
from realtime.openai_realtime.understanding import Understood, understand
from realtime.openai_realtime.wire import Ended, Wire
from sessions.retention.journal import Said
from sessions.store.interface import Fenced
from sessions.voice import events
from sessions.voice.attached import Attached, Dismissal
from sessions.voice.commands import ClearPlayback, Command, CommandRefused, Configure

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
        speaker: Speaker | None = None,
        patch: SessionPatch | None = None,
    ) -> None:
        self._context = context
        self._wire = wire
        self._attached = attached
        self._script = context.known_sessions.of(attached.session_id)
        self._speaker = speaker
        self._patch = patch
        self._told = asyncio.Event()
        """The client has been sent its session, and the token to come back with."""
        self._told_at = math.inf
        self._inbox = Inbox()
        self._outbox: deque[Said] = deque()
        """Numbered and noted. As long as what its few writers note at a time, since each waits until that is sent."""
        self._sending = asyncio.Lock()
        self._sound_in = SoundIn(self._script.shown.config.input_format)

    async def run(self) -> Ended:
        """Until one side ends it. What goes wrong inside propagates to the caller's funnel."""
        ended = Ended()
        try:
            async with asyncio.TaskGroup() as tasks:
                for work in (self._read(), self._obey(), self._tell(), self._announce_drain(), self._until_dismissed()):
                    tasks.create_task(work)
        except* Ended as group:
            ended = next(end for end in group.exceptions if isinstance(end, Ended))
        if ended.last_word:
            await self._say_last(ended)
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
        self._attached.heard()
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
                await self._obey_once(understood)

    async def _obey_once(self, understood: Understood) -> None:
        """Said twice under one id, it is answered as before, and done once."""
        event_id = understood.event_id
        if event_id is None:
            return await self._heed(self._do(understood.wish, None), None)
        answer = await self._attached.answered_before(event_id)
        if answer is None:
            self._attached.comes_to(event_id)
            await self._heed(self._do(understood.wish, event_id), event_id)
        elif answer:
            await self._refuse_again(answer)
        return None

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

    async def _do(self, wish: SessionUpdate | Command, event_id: str | None) -> None:
        if isinstance(wish, ClearPlayback) and self._speaker is None:
            message = "output_audio_buffer.clear: over a WebSocket the client plays for itself; stop there, and truncate the item"
            raise Refusal(message, code="unsupported", field="type")
        if isinstance(wish, SessionUpdate):
            await self.configure(wish.session, event_id)
        elif self._sound_in.is_long(wish):
            await self._handle(await asyncio.to_thread(self._sound_in.decoded, wish), event_id)
        else:
            await self._handle(self._sound_in.decoded(wish), event_id)

    async def _handle(self, commands: Sequence[Command], event_id: str | None = None) -> None:
        """The last of them is what the client's event of this id asks for."""
        for place, command in enumerate(commands, 1):
            await self._attached.handle(command, event_id if place == len(commands) else None)

    async def configure(self, patch: SessionPatch, event_id: str | None = None) -> None:
        """Raises Refusal and CommandRefused; then nothing has changed."""
        before = self._script.shown
        changed = apply(before, patch, self._context.catalogue)
        if self._attached.is_current:
            self._script.shown = changed  # at once: whoever takes over while the client is slow to hear of it knows of it
        try:
            await self._attached.handle(Configure(changed.config), event_id)
        except CommandRefused:
            if self._attached.is_current:
                self._script.shown = before
            raise
        if self._sound_in.format != changed.config.input_format:
            await self._handle(self._sound_in.change(changed.config.input_format))

    async def _tell(self) -> NoReturn:
        """Takes events from the session only when those before are on their way: a slow client holds back its own session."""
        async for group in self._attached.groups():
            sound = group[0]
            if self._speaker is not None and isinstance(sound, events.AudioDelta):
                await self._speaker.play(sound)
                continue
            with self._attached.session.giving(sound):
                await self._deliver(self._attached.note(group))
            for event in group:
                await self._note(event)
        if self._attached.dismissed.is_set():
            await self._until_dismissed()
        raise Ended(WSCloseCode.OK, "the session has ended")

    async def _deliver(self, said: Iterable[Said]) -> None:
        """In the order of their numbers, whoever notes them, and none before it is written down. Raises Ended when the client has
        gone, or takes nothing any more."""
        self._outbox.extend(said)
        async with self._sending:
            try:
                with self._context.metrics.sessions.journal_wait.time():
                    await self._attached.durable()
            except Fenced:
                raise dismissed(Dismissal.SUPERSEDED) from None
            while self._outbox:
                await self._wire.send(self._outbox[0].text)
                self._attached.sent(self._outbox.popleft())

    async def _until_dismissed(self) -> NoReturn:
        """Nothing waits for a client that may be long gone, least of all whoever has taken over."""
        await self._attached.dismissed.wait()
        if self._attached.why is Dismissal.MOVED and self._context.drain.begun and not self._context.keeps_sessions:
            message = "the server is stopping, and its sessions with it; connect again"
            raise Ended(WSCloseCode.SERVICE_RESTART, message, last_word="server_draining", last_type=SERVER)
        raise dismissed(self._attached.why)

    async def _say_last(self, ended: Ended) -> None:
        """No event of the session's, which goes on elsewhere or has ended."""
        error = ErrorBody(message=ended.reason, type=ended.last_type, code=ended.last_word)
        with contextlib.suppress(Ended, TimeoutError):
            async with asyncio.timeout(LAST_WORD_S):
                await self._wire.send(EventEncoder("end").encode(server_events.Error(error=error)))

    async def _note(self, event: events.Event) -> None:
        match event:
            case events.Opened() | events.Reopened() | events.Resumed():
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

    async def _announce_drain(self) -> None:
        """The session is put down when nobody is saying anything, and then its client is dismissed."""
        await self._context.drain.wait()
        limit_s = self._context.settings.drain_s
        message = f"the server is stopping: this connection ends after what is being said, at latest in {limit_s:g} s"
        await self.say(server_events.Error(error=ErrorBody(message=message, type=SERVER, code="server_draining")))

    async def _refuse(self, refused: Refusal, event_id: str | None) -> None:
        body = refused.body
        error = ErrorBody(message=body.message, type=body.type, code=body.code, param=body.param, event_id=event_id)
        if event_id is not None:
            self._attached.refused(event_id, msgspec.json.encode(error))
        await self.say(server_events.Error(error=error))

    async def _refuse_again(self, answer: bytes) -> None:
        await self.say(server_events.Error(error=msgspec.json.decode(answer, type=ErrorBody)))

    async def say(self, event: ServerEvent) -> None:
        """Raises Ended when the client has gone, or takes nothing any more."""
        if self._attached.is_current:
            said = self._script.say(event)
            self._attached.note_said(said)
            await self._deliver((said,))


def dismissed(why: Dismissal) -> Ended:
    """How it is told."""
    match why:
        case Dismissal.SUPERSEDED:
            return Ended(SUPERSEDED, "a newer connection has taken this session over", last_word="superseded")
        case Dismissal.MOVED:
            message = "the server has put this session down; come back to it with its resume token"
            return Ended(WSCloseCode.SERVICE_RESTART, message, last_word="session_moved", last_type=SERVER)
        case Dismissal.EXPIRED:
            message = "the session has reached the end of its life; open a new one"
            return Ended(WSCloseCode.OK, message, last_word="session_expired")
        case Dismissal.STOPPED:
            return Ended(WSCloseCode.OK, "the session was closed by an operator of this server", last_word="session_closed")
        case Dismissal.CLOSED:
            return Ended(WSCloseCode.OK, "the session has ended")
