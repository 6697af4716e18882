"""The life of a session, as one table."""

from enum import StrEnum


class State(StrEnum):
    QUEUED = "queued"
    OPENING = "opening"
    ACTIVE = "active"
    DETACHED = "detached"
    CLOSING = "closing"
    CLOSED = "closed"
    FAILED = "failed"
    EXPIRED = "expired"


LEGAL: dict[State, frozenset[State]] = {
    State.QUEUED: frozenset({State.OPENING, State.CLOSING, State.FAILED, State.EXPIRED}),
    State.OPENING: frozenset({State.ACTIVE, State.CLOSING, State.FAILED, State.EXPIRED}),
    State.ACTIVE: frozenset({State.DETACHED, State.CLOSING, State.FAILED, State.EXPIRED}),
    State.DETACHED: frozenset({State.ACTIVE, State.CLOSING, State.FAILED, State.EXPIRED}),
    State.CLOSING: frozenset({State.CLOSED, State.FAILED}),
    State.CLOSED: frozenset(),
    State.FAILED: frozenset(),
    State.EXPIRED: frozenset(),
}
ENDS = frozenset(state for state, following in LEGAL.items() if not following)


class IllegalTransition(Exception):
    """A bug of the caller: the table has no such step."""

    def __init__(self, session_id: str, source: State, target: State) -> None:
        expected = ", ".join(sorted(LEGAL[source])) or "nothing, it has ended"
        super().__init__(f"session {session_id!r} is {source}: expected a step to {expected}, got {target}")
        self.source = source
        self.target = target


def step(session_id: str, source: State, target: State) -> State:
    """Returns `target`. Raises IllegalTransition."""
    if target not in LEGAL[source]:
        raise IllegalTransition(session_id, source, target)
    return target
