"""One stage of one running attempt: the ways in, what is owed to it, and where its time went."""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Protocol

from engines.chunks import Chunk
from engines.connectors.contents import Content, Inline
from engines.graph.worker_link import WorkerLink
from engines.messages.to_worker import PUSH_WINDOW, Grant, Push
from engines.requests import StageTiming

WINDOW_CHUNKS = 64
"""Chunks a stage may emit beyond what all its readers have taken: 1 s of language model, 2 s of voice activity.
Policy: block, the engine stops working on this request and on no other."""
WINDOW_BYTES = 8 << 20
"""Bytes of arrays that a stage may have out likewise: so that one request cannot fill an arena. Policy: block."""


GRANT_CHUNKS = 16
"""Small chunks are granted so many at a time: a grant for each would wake the worker for each. Their window is far from used up
by then."""
SMALL_BYTES = 8 << 10
"""A window of such chunks is far from WINDOW_BYTES, too; whatever is larger, or waits in shared memory, is granted at once."""


class Sink(Protocol):
    """A reader of a stage's chunks; it takes every chunk, in order."""

    passed: int
    """How many it has taken."""
    closed: bool
    """It takes nothing more, and holds nobody up."""


class Outlet:
    """The caller as a reader of one output."""

    def __init__(self, output: str) -> None:
        self.output = output
        self.passed = 0
        self.closed = False


class Intake:
    """One way into a stage: an edge, or the caller's."""

    def __init__(self, send: Callable[[Content, bool], None]) -> None:
        self.passed = 0
        self.closed = False
        self._send = send
        self._sent = 0
        self._waiting: deque[tuple[Content, bool]] = deque()
        """Beyond PUSH_WINDOW; bounded by the feeder, which has a window of its own or waits for room. Policy: block."""
        self._moved = asyncio.Event()

    def offer(self, content: Content, final: bool) -> None:
        if not self.closed:
            self._waiting.append((content, final))
            self._advance()

    def taken(self, count: int) -> None:
        self.passed = min(self.passed + count, self._sent)
        self._advance()
        self._moved.set()

    def close(self) -> None:
        """What waits is dropped, who waits goes on."""
        self.closed = True
        self._waiting.clear()
        self._moved.set()

    async def room(self) -> None:
        while not self.closed and self._sent - self.passed >= PUSH_WINDOW:
            self._moved.clear()
            await self._moved.wait()

    def _advance(self) -> None:
        while self._waiting and self._sent - self.passed < PUSH_WINDOW:
            content, final = self._waiting.popleft()
            self._send(content, final)  # what cannot be sent is not waited for
            self._sent += 1


class StageRun:
    """`sources` feed it: stages, or the caller (""). `targets` and `outlets` read it: stages downstream, and the caller.
    `fed_with` is the connector for what the caller pushes."""

    def __init__(self, wire_id: str, stage: str, link: WorkerLink, sources: tuple[str, ...], fed_with: str) -> None:
        self.stage = stage
        self.link = link
        self.fed_with = fed_with
        self.done = False
        self.received = 0
        self.intakes = {source: self._intake(source) for source in sources}
        self.targets: list[StageRun] = []
        self.outlets: list[Outlet] = []
        self._wire_id = wire_id
        self._granted = 0
        self._placed = 0
        """Chunks up to the last one whose payload lies at the producer until it is granted."""
        self._large = 0
        """Chunks up to the last one that is not small."""
        self._first_ms: float | None = None
        self._queue_ms = 0.0
        self._run_ms = 0.0

    @property
    def may_emit(self) -> bool:
        return self.received < self._granted + WINDOW_CHUNKS

    @property
    def holds_payloads(self) -> bool:
        """The worker keeps payloads of chunks that are not granted yet."""
        return self._granted < self._placed

    def note(self, chunk: Chunk, since_submit_ms: float) -> None:
        self.received += 1
        self._queue_ms += chunk.timing.queue_ms
        self._run_ms += chunk.timing.run_ms
        if not isinstance(chunk.content, Inline):
            self._placed = self._large = self.received
        elif chunk.content.nbytes > SMALL_BYTES:
            self._large = self.received
        if self._first_ms is None and not (chunk.final and chunk.content.is_empty):
            self._first_ms = since_submit_ms

    def finish(self) -> None:
        """The stage works on nothing of the request any more."""
        self.done = True
        self.close_intakes()

    def close_intakes(self) -> None:
        for intake in self.intakes.values():
            intake.close()

    def grant(self) -> bool:
        """Allow as many chunks more as every reader has taken since the last time, once that is worth a message; whether one was
        sent. A stage that is done needs to know only when it holds payloads for them."""
        sinks: list[Sink] = [*self.outlets, *(target.intakes[self.stage] for target in self.targets)]
        passed = min((sink.passed for sink in sinks if not sink.closed), default=self.received)
        due = self.holds_payloads if self.done else self._granted < self._large or passed - self._granted >= GRANT_CHUNKS
        if passed <= self._granted or not due:
            return False
        self.link.send(Grant(self._wire_id, self.stage, passed - self._granted))
        self._granted = passed
        return True

    def forsake(self) -> None:
        """The caller reads nothing more of it."""
        for outlet in self.outlets:
            outlet.closed = True
        self.grant()

    def timing(self) -> StageTiming:
        return StageTiming(self._first_ms, self._queue_ms, self._run_ms, self.received)

    def _intake(self, source: str) -> Intake:
        def push(content: Content, final: bool) -> None:
            self.link.send(Push(self._wire_id, self.stage, source, content, final))

        return Intake(push)
