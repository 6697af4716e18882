"""When a session ends by itself: its longest life, the silence of its client, the time without one."""

from collections.abc import Callable
from typing import Protocol, TypeAlias

from sessions.retention.settings import Lifetime
from sessions.retention.watch import Expiry

WARNED_S = 60.0
"""Before the longest life is over."""


class Timer(Protocol):
    def cancel(self) -> None: ...


CallLater: TypeAlias = Callable[[float, Callable[[], None]], Timer]
"""The loop's."""


class Life:
    """`left_s`: of its longest life. `warn` is told so many seconds ahead; `unattended` when what was being said is over, as
    nobody came back to hear it; `over` at the end. Only what a client sends extends anything, and never the longest life."""

    def __init__(
        self,
        lifetime: Lifetime,
        left_s: float,
        answer_grace_s: float,
        clock: Callable[[], float],
        call_later: CallLater,
        *,
        warn: Callable[[float], None],
        unattended: Callable[[], None],
        over: Callable[[Expiry], None],
    ) -> None:
        self.grace_s = lifetime.grace_s
        self._idle_s = lifetime.idle_s
        self._answer_grace_s = answer_grace_s
        self._clock = clock
        self._call_later = call_later
        self._unattended = unattended
        self._over = over
        self._heard_at = clock()
        ahead_s = min(WARNED_S, left_s)
        self._timers = [
            call_later(left_s - ahead_s, lambda: warn(ahead_s)),
            call_later(left_s, lambda: over(Expiry.LONGEST_LIFE)),
        ]
        self._idle: Timer | None = None
        self._absence: list[Timer] = []

    def heard(self) -> None:
        """The client has sent something."""
        self._heard_at = self._clock()

    def attached(self) -> None:
        self._cancel_absence()
        self.heard()
        if self._idle_s is not None:
            self._watch(self._idle_s)

    def detached(self) -> None:
        self.stop_idle()
        self._absence = [
            self._call_later(self._answer_grace_s, self._unattended),
            self._call_later(self.grace_s, lambda: self._over(Expiry.DETACHED)),
        ]

    def end(self) -> None:
        self._cancel_absence()
        self.stop_idle()
        for timer in self._timers:
            timer.cancel()

    def stop_idle(self) -> None:
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None

    def _watch(self, limit_s: float) -> None:
        self.stop_idle()
        self._idle = self._call_later(max(0.0, self._heard_at + limit_s - self._clock()), lambda: self._look(limit_s))

    def _look(self, limit_s: float) -> None:
        if self._clock() - self._heard_at >= limit_s:
            self._over(Expiry.IDLE)
        else:
            self._watch(limit_s)

    def _cancel_absence(self) -> None:
        for timer in self._absence:
            timer.cancel()
        self._absence = []
