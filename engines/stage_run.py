"""One stage of one running request: the way in, what is owed to it, and where its time went."""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Protocol

from engines.chunks import Chunk
from engines.connectors.contents import Content
from engines.messages.to_worker import PUSH_WINDOW, Grant, Push
from engines.requests import StageTiming
from engines.worker_link import WorkerLink

WINDOW_CHUNKS = 64
"""Chunks a stage may emit beyond what all its readers have taken: 1 s of language model, 2 s of voice activity.
Policy: block, the engine stops working on this request and on no other."""


WINDOW_BYTES = 8 << 20
"""Bytes of arrays that a stage may have out likewise: so that one request cannot fill an arena. Policy: block."""


class Sink(Protocol):
    """A reader of a stage's chunks; it takes every chunk, in order."""

    passed: int
    """How many it has taken."""


class Outlet:
    """The caller as a reader of one output."""

    def __init__(self, output: str) -> None:
        self.output = output
        self.passed = 0


class Intake:
    """The way into a stage, whoever feeds it."""

    def __init__(self, send: Callable[[Content, bool], None]) -> None:
        self.passed = 0
        self._send = send
        self._sent = 0
        self._waiting: deque[tuple[Content, bool]] = deque()
        """Beyond PUSH_WINDOW; bounded by the feeder, which has a window of its own or waits for room. Policy: block."""
        self._moved = asyncio.Event()
        self._closed = False

    def offer(self, content: Content, final: bool) -> None:
        if not self._closed:
            self._waiting.append((content, final))
            self._advance()

    def taken(self, count: int) -> None:
        self.passed = min(self.passed + count, self._sent)
        self._advance()
        self._moved.set()

    def close(self) -> None:
        """The stage takes nothing more: what waits is dropped, who waits goes on, and its feeder is not held up."""
        self._closed = True
        self._waiting.clear()
        self._moved.set()

    async def room(self) -> None:
        while not self._closed and self._sent - self.passed >= PUSH_WINDOW:
            self._moved.clear()
            await self._moved.wait()

    def _advance(self) -> None:
        while self._waiting and self._sent - self.passed < PUSH_WINDOW:
            self._sent += 1
            self._send(*self._waiting.popleft())


class StageRun:
    def __init__(self, request_id: str, stage: str, link: WorkerLink, source: str) -> None:
        self.stage = stage
        self.link = link
        self.done = False
        self.received = 0
        self.targets: list[StageRun] = []
        self.outlets: list[Outlet] = []
        self.intake = Intake(self._push)
        self._request_id = request_id
        self._source = source
        self._granted = 0
        self._first_ms: float | None = None
        self._queue_ms = 0.0
        self._run_ms = 0.0

    @property
    def may_emit(self) -> bool:
        return self.received < self._granted + WINDOW_CHUNKS

    def note(self, chunk: Chunk, since_submit_ms: float, *, empty: bool) -> None:
        self.received += 1
        self._queue_ms += chunk.timing.queue_ms
        self._run_ms += chunk.timing.run_ms
        if self._first_ms is None and not empty:
            self._first_ms = since_submit_ms

    def finish(self) -> None:
        """The stage holds nothing of the request any more."""
        self.done = True
        self.intake.close()

    def grant(self) -> None:
        """Allow as many chunks more as every reader has taken since the last time."""
        passed = min((sink.passed for sink in self._sinks()), default=self.received)
        if passed > self._granted and not self.done:
            self.link.send(Grant(self._request_id, self.stage, passed - self._granted))
            self._granted = passed

    def timing(self) -> StageTiming:
        return StageTiming(self._first_ms, self._queue_ms, self._run_ms, self.received)

    def _sinks(self) -> list[Sink]:
        return [*self.outlets, *(target.intake for target in self.targets if not target.done)]

    def _push(self, content: Content, final: bool) -> None:
        self.link.send(Push(self._request_id, self.stage, self._source, content, final))
