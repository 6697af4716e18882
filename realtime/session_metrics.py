"""How many sessions this node has, and in which state; how they were come back to, and ended by themselves."""

from collections import Counter as Tally
from collections.abc import Iterable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from sessions.admission.seats import VOICE
from sessions.retention.watch import Expiry, Resume
from sessions.states import State
from sessions.voice.sessions import SessionInfo

JOURNAL_S = (0.0005, 0.001, 0.002, 0.003, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5, 2.0, 10.0)
SHOWN = (State.QUEUED, State.OPENING, State.ACTIVE, State.DETACHED, State.CLOSING)


class SessionMetrics:
    """Implements sessions.session_watch.SessionWatch."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._sessions = Gauge("antiphon_sessions", "Sessions of this node", ("kind", "state"), registry=registry)
        self._active = Gauge("antiphon_sessions_active", "Open realtime sessions", registry=registry)
        self._resumed = Counter(
            "antiphon_resumed_total",
            "Clients that came back; how: replayed, resync; where: same, other node than before",
            ("how", "where"),
            registry=registry,
        )
        self._expired = Counter("antiphon_expired_total", "Sessions that ended by themselves", ("why",), registry=registry)
        self.journal_wait = Histogram(
            "antiphon_journal_wait_seconds",
            "What events waited to be written down before they went out",
            buckets=JOURNAL_S,
            registry=registry,
        )

    def count(self, sessions: Iterable[SessionInfo]) -> None:
        states = Tally((each.kind, each.state) for each in sessions)
        self._active.set(sum(states.values()))
        for kind in {VOICE, *(kind for kind, _ in states)}:
            for state in SHOWN:
                self._sessions.labels(kind, state.value).set(states[kind, state])

    def resumed(self, how: Resume, *, moved: bool) -> None:
        self._resumed.labels(how.value, "other" if moved else "same").inc()

    def expired(self, why: Expiry) -> None:
        self._expired.labels(why.value).inc()
