"""A worker's life under a clock that only moves when somebody waits."""

import asyncio
from collections.abc import Callable

from engines.launching.liveness import Condition


class FakeTime:
    """`at` scripts what happens meanwhile; `wakes` are the times at which somebody stopped waiting."""

    def __init__(self) -> None:
        self.wakes: list[float] = []
        self._now = 0.0
        self._script: list[tuple[float, Callable[[], None]]] = []

    def now(self) -> float:
        return self._now

    def at(self, when: float, action: Callable[[], None]) -> None:
        self._script.append((when, action))
        self._script.sort(key=lambda entry: entry[0])

    async def pause(self, seconds: float, unless: asyncio.Event | None) -> None:
        await asyncio.sleep(0)
        end = self._now + seconds
        while self._script and self._script[0][0] <= end and not (unless and unless.is_set()):
            self._now, action = self._script.pop(0)
            action()
        if not (unless and unless.is_set()):
            self._now = end
        self.wakes.append(self._now)


ANSWER_S = 0.001


class FakeLife:
    """Answers after ANSWER_S, unless `silent`. `asked` are the times of the questions."""

    def __init__(self, time: FakeTime) -> None:
        self.heard_at = 0.0
        self.answered = asyncio.Event()
        self.called = asyncio.Event()
        self.resident_bytes = 0
        self.limit_bytes = float("inf")
        self.may_be_slow = False
        self.silent = False
        self.state = Condition.RUNNING
        self.asked: list[float] = []
        self._time = time

    def says_something(self) -> None:
        self.heard_at = self._time.now()

    def stops(self) -> None:
        self.silent, self.state = True, Condition.STOPPED

    def is_killed(self) -> None:
        self.silent, self.state = True, Condition.ENDING

    def hangs(self) -> None:
        self.silent = True

    def ask(self) -> None:
        self.asked.append(self._time.now())
        self.answered.clear()
        self._time.at(self._time.now() + ANSWER_S, self._answer)

    def _answer(self) -> None:
        if not self.silent:
            self.says_something()
            self.answered.set()

    def condition(self) -> Condition:
        return self.state
