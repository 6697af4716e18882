"""Opens voice sessions and keeps them: each runs in a task of its own and outlives its transports."""

import asyncio
import logging
import time
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from types import TracebackType

from engines import logs
from engines.requests import Graph
from sessions.commands import Command, CommandRefused
from sessions.conversation import Sound
from sessions.events import Event
from sessions.manager import Attachment, Kind, SessionManager
from sessions.playout import Player
from sessions.settings import VoiceSettings
from sessions.voice import VoiceSession
from sessions.voice_config import VoiceConfig

log = logging.getLogger(__name__)


def new_id(prefix: str) -> str:
    return f"{prefix}_{uuid.uuid4().hex[:20]}"


class Attached:
    """What one transport has of its session, until another one takes over: then `superseded` is set, nothing it says is obeyed
    and it hears nothing more."""

    def __init__(self, session: VoiceSession, attachment: Attachment, manager: SessionManager) -> None:
        self.session = session
        self.attachment = attachment
        self.superseded = asyncio.Event()
        self.leaves = False
        self._manager = manager

    @property
    def session_id(self) -> str:
        return self.attachment.session_id

    @property
    def token(self) -> str:
        """With which the client comes back, as long as the session is held."""
        return f"{self.session_id}.{self.attachment.resume_token}"

    def delivered(self) -> None:
        """The client has shown that it has the token: those before are void."""
        self._manager.delivered(self.attachment)

    @property
    def held_until_s(self) -> float:
        """If the connection were lost now, in Unix seconds."""
        return self._manager.held_until_s

    @property
    def is_current(self) -> bool:
        return self._manager.is_current(self.session_id, self.attachment.fence)

    async def events(self) -> AsyncIterator[Event]:
        """For one reader. They end when the session does, or when another transport takes over."""
        if self.is_current:
            async for event in self.session.events():
                yield event

    async def handle(self, command: Command) -> None:
        """Raises CommandRefused; the session goes on."""
        if not self.is_current:
            raise CommandRefused("superseded", "a newer connection has taken this session over")
        await self.session.handle(command)

    def leave(self) -> None:
        """The client has said goodbye: the session ends with the block. Without this it waits for the client."""
        self.leaves = True


class _Running:
    """A session in a task of its own. As its seat's tenant it is told when nobody comes back."""

    session: VoiceSession

    def __init__(self, session_id: str, manager: SessionManager) -> None:
        self.session_id = session_id
        self.attached: Attached | None = None
        self._manager = manager
        self._ready = asyncio.Event()
        self._ending = asyncio.Event()

    def start(self, session: VoiceSession, over: Callable[[], None]) -> None:
        self.session = session
        self._task = asyncio.create_task(self._run(), name=self.session_id)
        self._task.add_done_callback(lambda _: over())

    def unattended(self) -> None:
        log.info("session %s: nobody came back to hear the answer", self.session_id)
        self.session.give_up()

    def evicted(self) -> None:
        log.info("session %s: nobody came back, its seat is free", self.session_id)
        self._ending.set()

    def take(self, attached: Attached) -> None:
        """This transport is the session's, and no other."""
        if self.attached is not None:
            self.attached.superseded.set()
        self.attached = attached

    async def ready(self) -> None:
        """Returns when it runs, or has failed to."""
        await self._ready.wait()

    async def leave(self, attached: Attached) -> None:
        """The transport is gone. Raises what has broken the session, if anything."""
        if self.attached is not attached:
            return
        if attached.leaves or self.session.ended:
            await self.end()
            self._task.result()
        elif self._manager.detach(self.session_id, attached.attachment.fence):
            self.attached = None
            self.session.detach()

    async def end(self) -> None:
        """Returns when nothing is left of it."""
        self._manager.closing(self.session_id)
        self._ending.set()
        await asyncio.wait({self._task})

    def tell_failure(self) -> None:
        """When no transport is there that would."""
        if self.attached is None and not self._task.cancelled() and (failure := self._task.exception()) is not None:
            log.error("session %s failed while nobody was connected", self.session_id, exc_info=failure)

    async def _run(self) -> None:
        end = self._manager.fail
        try:
            with logs.about(session=self.session_id):
                async with self.session:
                    self._ready.set()
                    await self._ending.wait()
            end = self._manager.close
        finally:
            self._ready.set()
            end(self.session_id)


class VoiceSessions:
    """`async with sessions:` leaving ends them all. `voices` maps a voice's name to the graph's output that speaks with it."""

    def __init__(
        self,
        graph: Graph,
        manager: SessionManager,
        settings: VoiceSettings,
        voices: Mapping[str, str],
        clock: Callable[[], float] = time.monotonic,
        ids: Callable[[str], str] = new_id,
    ) -> None:
        self._graph = graph
        self._manager = manager
        self._settings = settings
        self._voices = voices
        self._clock = clock
        self._ids = ids
        self._running: dict[str, _Running] = {}
        self.sound = Sound()
        """Of the answers of sessions that are over."""

    async def __aenter__(self) -> "VoiceSessions":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, trace: TracebackType | None
    ) -> None:
        await asyncio.gather(*(running.end() for running in self._running.values()))

    @asynccontextmanager
    async def open(self, config: VoiceConfig, play: Player | None = None) -> AsyncGenerator[Attached]:
        """A new session and its first transport. Raises SeatRefused. What the block and the session's tasks log is about this
        session. However the block ends: unless the client has said goodbye, the session waits for it."""
        running, attached = self._begin(config, play)
        async with self._at(running, attached):
            await running.ready()
            yield attached

    @asynccontextmanager
    async def resume(self, token: str, play: Player | None = None) -> AsyncGenerator[Attached]:
        """Another transport of the session that gave this token, in place of the one before. Raises ResumeRefused."""
        session_id, _, secret = token.partition(".")
        attachment = self._manager.resume(session_id, secret)
        running = self._running[session_id]
        attached = Attached(running.session, attachment, self._manager)
        async with self._at(running, attached):
            running.session.attach(attachment.fence.number, play)
            yield attached

    @asynccontextmanager
    async def _at(self, running: _Running, attached: Attached) -> AsyncGenerator[None]:
        running.take(attached)
        try:
            with logs.about(session=attached.session_id):
                yield
        finally:
            await running.leave(attached)

    def _begin(self, config: VoiceConfig, play: Player | None) -> tuple[_Running, Attached]:
        def spawn(work: Coroutine[None, None, None]) -> asyncio.Task[None]:
            return running.session.spawn(work)

        session_id, playout = self._ids("sess"), None if play is None else play(None, spawn)
        running = _Running(session_id, self._manager)
        self._manager.open(session_id, Kind.VOICE, running)
        attachment = self._manager.attach(session_id)
        session = VoiceSession(
            self._graph,
            config,
            self._settings,
            self._voices,
            session_id,
            attachment.fence.number,
            self._clock,
            self._ids,
            playout,
        )
        self._running[session_id] = running
        running.start(session, lambda: self._over(running))
        return running, Attached(session, attachment, self._manager)

    def _over(self, running: _Running) -> None:
        del self._running[running.session_id]
        self.sound += running.session.sound
        running.tell_failure()
