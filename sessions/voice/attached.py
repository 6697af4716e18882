"""What one transport has of its session."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING

from engines.requests import RequestFailed
from sessions.retention.client_results import OBEYED
from sessions.retention.journal import Said
from sessions.retention.resume_tokens import token_of
from sessions.voice.commands import AppendAudio, Command, CommandRefused
from sessions.voice.events import Event
from sessions.voice.teller import Teller

if TYPE_CHECKING:
    from sessions.voice.running import Running
    from sessions.voice.session import VoiceSession


class Dismissal(StrEnum):
    """Why a transport has to go while its client is there."""

    SUPERSEDED = "superseded"
    """Another transport has the session, here or on another node."""
    MOVED = "moved"
    """The session is put down: with its token the client finds it again, here or elsewhere."""
    EXPIRED = "expired"
    """The longest life, or the limit of silence, is reached."""
    STOPPED = "stopped"
    """An operator has ended the session."""
    CLOSED = "closed"
    """It has ended, and nobody needs to be told why."""


class Attached:
    """Until another one takes over, or the session ends: then `dismissed` is set, nothing it says is obeyed and it hears nothing
    more."""

    def __init__(self, running: "Running", fence: int, secret: str) -> None:
        self.fence = fence
        self.secret = secret
        self.dismissed = asyncio.Event()
        self.why = Dismissal.SUPERSEDED
        self.leaves = False
        self._has_shown = False
        self._running = running

    @property
    def session(self) -> "VoiceSession":
        return self._running.session

    @property
    def session_id(self) -> str:
        return self._running.session_id

    @property
    def teller(self) -> Teller:
        return self._running.outgoing.teller

    @property
    def token(self) -> str:
        """With which the client comes back, as long as the session is held."""
        return token_of(self.session_id, self.secret)

    @property
    def is_current(self) -> bool:
        return self._running.attached is self and not self.dismissed.is_set()

    def dismiss(self, why: Dismissal) -> None:
        if not self.dismissed.is_set():
            self.why = why
            self.dismissed.set()

    def heard(self) -> None:
        """The client has sent something."""
        self._running.life.heard()

    def delivered(self) -> None:
        """The client has shown that it has the token: those before are void. The store is told once."""
        if self.is_current and not self.session.ended and not self._has_shown:
            self._has_shown = True
            self._running.delivered(self)

    @property
    def muted(self) -> bool:
        """Nothing may be said now: the session may be another node's by now."""
        return not self.is_current or self._running.hold.muted

    async def events(self) -> AsyncIterator[Event]:
        """For one reader. They end when the session does, or when another transport takes over. Nobody writes them down."""
        if self.is_current:
            async for event in self.session.events():
                yield event

    async def groups(self) -> AsyncIterator[tuple[Event, ...]]:
        """The same, as many at a time as there are; sound comes alone. Each is to be passed on to `note` at once, but for sound
        that somebody plays."""
        if self.is_current:
            async for group in self.session.groups():
                yield group

    def note(self, group: Sequence[Event]) -> tuple[Said, ...]:
        """As these go out on the wire. To be sent in this order, after `durable`."""
        return self._running.note(group)

    def note_said(self, said: Said) -> None:
        """What the transport itself has to say."""
        if self.is_current:
            self._running.outgoing.journal.note((said,))

    def sent(self, said: Said) -> None:
        """It is on its way."""
        self._running.outgoing.sent(said)

    async def durable(self) -> None:
        """Returns when what was noted may go out. Raises Fenced when the session is somebody else's."""
        await self._running.outgoing.journal.durable()

    async def handle(self, command: Command, event_id: str | None = None) -> None:
        """What has begun is carried out, also when the transport goes meanwhile; of the client's event of this id it is written
        down. Raises CommandRefused and RequestFailed; the session goes on."""
        if not self.is_current:
            raise CommandRefused("superseded", "a newer connection has taken this session over")
        if isinstance(command, AppendAudio):
            await self.session.handle(command)
            return self._obeyed(event_id)
        failure = await asyncio.shield(self.session.spawn(self._outcome(command, event_id)))
        if failure is not None:
            raise failure
        return None

    async def _outcome(self, command: Command, event_id: str | None) -> CommandRefused | RequestFailed | None:
        try:
            await self.session.handle(command)
        except (CommandRefused, RequestFailed) as failure:
            return failure
        return self._obeyed(event_id)

    def _obeyed(self, event_id: str | None) -> None:
        if event_id is not None:
            self._running.outgoing.answered(event_id, OBEYED)

    async def answered_before(self, event_id: str) -> bytes | None:
        """What the client's event of this id was answered within the last minute: an error, or nothing; None: it is new."""
        return await self._running.results.of(event_id)

    def comes_to(self, event_id: str) -> None:
        """From here on the event of this id is not new here."""
        self._running.results.keep(event_id, OBEYED)

    def refused(self, event_id: str, error: bytes) -> None:
        self._running.results.keep(event_id, error)
        self._running.outgoing.answered(event_id, error)

    def leave(self) -> None:
        """The client has said goodbye: the session ends with the block. Without this it waits for the client."""
        self.leaves = True
