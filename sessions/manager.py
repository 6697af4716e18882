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


class _Seat(msgspec.Struct):
    session_id: str
    kind: Kind
    tokens: ResumeTokens
    state: State = State.OPENING
    fence: Fence | None = None
    grace: Timer | None = None


class SessionManager:
    """`incarnation` names this store's life and `now_us` its time in microseconds; `call_later` is the loop's.

    `on_expired` is told the id of a session whose detached time is over, after its seat is free.
    """

    def __init__(
        self,
        limits: SessionLimits,
        incarnation: int,
        now_us: Callable[[], int],
        call_later: Callable[[float, Callable[[], None]], Timer],
        on_expired: Callable[[str], None],
    ) -> None:
        self._limits = limits
        self._incarnation = incarnation
        self._now_us = now_us
        self._call_later = call_later
        self._on_expired = on_expired
        self._seats: dict[str, _Seat] = {}
        self._last_fence = 0

    def open(self, session_id: str, kind: Kind) -> None:
        """Takes a seat, state `opening`. Raises SeatRefused, and ValueError for an id in use."""
        if session_id in self._seats:
            raise ValueError(f"session id: expected a new one, got {session_id!r}, which is in use")
        if len(self._seats) >= self._limits.maximum_sessions:
            raise SeatRefused(self._limits.maximum_sessions)
        self._seats[session_id] = _Seat(session_id, kind, ResumeTokens())

    def attach(self, session_id: str) -> Attachment:
        """The first transport of a session that is opening."""
        seat = self._seats[session_id]
        seat.state = step(session_id, seat.state, State.ACTIVE)
        return self._attached(seat, seat.tokens.issue())

    def resume(self, session_id: str, token: str) -> Attachment:
        """A transport comes back; of two attachments the newest wins. Raises ResumeRefused."""
        seat = self._seats.get(session_id)
        following = seat.tokens.use(token) if seat is not None else None
        if seat is None or following is None or seat.state not in (State.ACTIVE, State.DETACHED):
            raise ResumeRefused
        self._stop_grace(seat)
        if seat.state is State.DETACHED:
            seat.state = step(session_id, seat.state, State.ACTIVE)
        return self._attached(seat, following)

    def is_current(self, session_id: str, fence: Fence) -> bool:
        """Whether the attachment with this fence may still act for the session."""
        seat = self._seats.get(session_id)
        return seat is not None and seat.fence == fence

    def detach(self, session_id: str, fence: Fence) -> bool:
        """The transport is gone; the seat is kept for a while. False when a newer attachment has taken over."""
        if not self.is_current(session_id, fence):
            return False
        seat = self._seats[session_id]
        seat.state = step(session_id, seat.state, State.DETACHED)
        seat.grace = self._call_later(self._limits.detached_grace_s, lambda: self._expire(session_id))
        return True

    def close(self, session_id: str) -> None:
        """Frees the seat. A session that has ended already is left alone."""
        seat = self._seats.get(session_id)
        if seat is not None:
            seat.state = step(session_id, seat.state, State.CLOSING)
            self._end(seat, State.CLOSED)

    def fail(self, session_id: str) -> None:
        """Frees the seat of a session that broke. A session that has ended already is left alone."""
        seat = self._seats.get(session_id)
        if seat is not None:
            self._end(seat, State.FAILED)

    def sessions(self) -> tuple[SessionInfo, ...]:
        return tuple(SessionInfo(seat.session_id, seat.kind, seat.state, seat.fence) for seat in self._seats.values())

    @property
    def free_seats(self) -> int:
        return self._limits.maximum_sessions - len(self._seats)

    def _attached(self, seat: _Seat, token: str) -> Attachment:
        self._last_fence = max(self._last_fence + 1, self._now_us())
        seat.fence = Fence(self._incarnation, self._last_fence)
        return Attachment(seat.session_id, seat.fence, token)

    def _expire(self, session_id: str) -> None:
        self._end(self._seats[session_id], State.EXPIRED)
        self._on_expired(session_id)

    def _end(self, seat: _Seat, end: State) -> None:
        seat.state = step(seat.session_id, seat.state, end)
        self._stop_grace(seat)
        del self._seats[seat.session_id]

    def _stop_grace(self, seat: _Seat) -> None:
        if seat.grace is not None:
            seat.grace.cancel()
            seat.grace = None
