"""Seats, states and attachments of the sessions of one process, in memory."""

from collections.abc import Callable
from enum import StrEnum
from typing import Protocol

import msgspec

from sessions.resume_tokens import ResumeTokens
from sessions.settings import SessionLimits
from sessions.states import State, step


class Kind(StrEnum):
    VOICE = "voice"


class Fence(msgspec.Struct, frozen=True, order=True):
    """Only grows; the newest attachment has the greatest. `number` is what rides on requests and chunks."""

    incarnation: int
    number: int


class Attachment(msgspec.Struct, frozen=True):
    session_id: str
    fence: Fence
    resume_token: str


class SessionInfo(msgspec.Struct, frozen=True):
    session_id: str
    kind: Kind
    state: State
    fence: Fence | None


class SeatRefused(Exception):
    """No seat for another session."""

    def __init__(self, seats: int) -> None:
        super().__init__(f"all {seats} sessions of this server are taken; try again later")
        self.seats = seats


class ResumeRefused(Exception):
    """Unknown session or wrong token; the two are not told apart."""

    def __init__(self) -> None:
        super().__init__("expected the resume token of a session that is still held, got another one; open a new session")


class Timer(Protocol):
    def cancel(self) -> None: ...


class Tenant(Protocol):
    """A session, as far as it hears of its seat."""

    def unattended(self) -> None:
        """It has been without a transport for so long that what it was saying is over."""
        ...

    def evicted(self) -> None:
        """The seat is gone: nobody came back in time, or somebody else needed it."""
        ...


class _Seat(msgspec.Struct):
    session_id: str
    kind: Kind
    tenant: Tenant
    tokens: ResumeTokens
    state: State = State.OPENING
    fence: Fence | None = None
    timers: list[Timer] = []


class SessionManager:
    """`incarnation` names this store's life and `now_us` its time in microseconds; `call_later` is the loop's."""

    def __init__(
        self,
        limits: SessionLimits,
        incarnation: int,
        now_us: Callable[[], int],
        call_later: Callable[[float, Callable[[], None]], Timer],
    ) -> None:
        self._limits = limits
        self._incarnation = incarnation
        self._now_us = now_us
        self._call_later = call_later
        self._seats: dict[str, _Seat] = {}
        self._lent: dict[str, None] = {}
        """Detached sessions, the one detached longest first."""
        self._last_fence = 0

    def open(self, session_id: str, kind: Kind, tenant: Tenant) -> None:
        """Takes a seat, state `opening`; when all are taken, that of the session detached longest.

        Raises SeatRefused, and ValueError for an id in use.
        """
        if session_id in self._seats:
            raise ValueError(f"session id: expected a new one, got {session_id!r}, which is in use")
        if not self.free_seats and self._lent:
            self._evict(next(iter(self._lent)))
        if not self.free_seats:
            raise SeatRefused(self._limits.maximum_sessions)
        self._seats[session_id] = _Seat(session_id, kind, tenant, ResumeTokens())

    def attach(self, session_id: str) -> Attachment:
        """The first transport of a session that is opening."""
        seat = self._seats[session_id]
        seat.state = step(session_id, seat.state, State.ACTIVE)
        return self._attached(seat, seat.tokens.offer())

    def resume(self, session_id: str, token: str) -> Attachment:
        """A transport comes back; of two attachments the newest wins. Raises ResumeRefused."""
        seat = self._seats.get(session_id)
        following = seat.tokens.use(token) if seat is not None else None
        if seat is None or following is None or seat.state not in (State.ACTIVE, State.DETACHED):
            raise ResumeRefused
        self._stop_timers(seat)
        if seat.state is State.DETACHED:
            seat.state = step(session_id, seat.state, State.ACTIVE)
        return self._attached(seat, following)

    def delivered(self, attachment: Attachment) -> None:
        """The client has shown that it has the token of this attachment: older ones are void. Only the newest may say so."""
        seat = self._seats.get(attachment.session_id)
        if seat is not None and seat.fence == attachment.fence:
            seat.tokens.delivered(attachment.resume_token)

    def is_current(self, session_id: str, fence: Fence) -> bool:
        """Whether the attachment with this fence may still act for the session."""
        seat = self._seats.get(session_id)
        return seat is not None and seat.fence == fence

    def detach(self, session_id: str, fence: Fence) -> bool:
        """The transport is gone; the seat is kept for a while, and lent to whoever finds no other.

        False when a newer attachment has taken over, or the session is ending.
        """
        seat = self._seats.get(session_id)
        if seat is None or seat.fence != fence or seat.state is not State.ACTIVE:
            return False
        seat.state = step(session_id, seat.state, State.DETACHED)
        self._lent[session_id] = None
        seat.timers = [
            self._call_later(self._limits.answer_grace_s, seat.tenant.unattended),
            self._call_later(self._limits.detached_grace_s, lambda: self._evict(session_id)),
        ]
        return True

    def closing(self, session_id: str) -> None:
        """Nobody can come back to it any more; its seat is taken until `close`."""
        seat = self._seats.get(session_id)
        if seat is not None and seat.state is not State.CLOSING:
            seat.state = step(session_id, seat.state, State.CLOSING)
            self._stop_timers(seat)

    def close(self, session_id: str) -> None:
        """Frees the seat. A session that has ended already is left alone."""
        self.closing(session_id)
        seat = self._seats.get(session_id)
        if seat is not None:
            self._end(seat, State.CLOSED)

    def fail(self, session_id: str) -> None:
        """Frees the seat of a session that broke. A session that has ended already is left alone."""
        seat = self._seats.get(session_id)
        if seat is not None:
            self._end(seat, State.FAILED)

    def sessions(self) -> tuple[SessionInfo, ...]:
        return tuple(SessionInfo(seat.session_id, seat.kind, seat.state, seat.fence) for seat in self._seats.values())

    @property
    def held_until_s(self) -> float:
        """Of a session whose transport is lost now, in seconds of the store's time."""
        return self._now_us() / 1e6 + self._limits.detached_grace_s

    @property
    def free_seats(self) -> int:
        return self._limits.maximum_sessions - len(self._seats)

    def _attached(self, seat: _Seat, token: str) -> Attachment:
        self._last_fence = max(self._last_fence + 1, self._now_us())
        seat.fence = Fence(self._incarnation, self._last_fence)
        return Attachment(seat.session_id, seat.fence, token)

    def _evict(self, session_id: str) -> None:
        seat = self._seats[session_id]
        self._end(seat, State.EXPIRED)
        seat.tenant.evicted()

    def _end(self, seat: _Seat, end: State) -> None:
        seat.state = step(seat.session_id, seat.state, end)
        self._stop_timers(seat)
        del self._seats[seat.session_id]

    def _stop_timers(self, seat: _Seat) -> None:
        """It is not detached any more."""
        self._lent.pop(seat.session_id, None)
        for timer in seat.timers:
            timer.cancel()
        seat.timers = []
