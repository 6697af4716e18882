"""A running request as its caller holds it: input, deliveries, one failure or none, and a second try on other replicas."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from typing import NamedTuple, Protocol

from engines.chunks import Chunk
from engines.connectors import PayloadLost
from engines.connectors.contents import Key
from engines.connectors.process import Connectors
from engines.first_of import first_of
from engines.graph.attempt import Attempt
from engines.graph.graph_counters import Outcome
from engines.graph.stage_run import Outlet, StageRun
from engines.messages.to_gateway import ErrorKind
from engines.payloads import Payload
from engines.requests import Delivery, Request, RequestFailed, StageTiming

KEPT_INPUTS = 256
KEPT_BYTES = 4 << 20
"""What is kept of the input for a second try. A request that has been fed more is not tried again."""


class Admission(Protocol):
    """Where a running request comes from."""

    def open(self, owner: "RunningRequest") -> Attempt:
        """Another attempt on the replicas that live now. Raises RequestFailed."""
        ...

    def ended(self, owner: "RunningRequest", outcome: Outcome) -> None:
        """Its caller can get nothing more, apart from what is waiting already."""
        ...


class Waiting(NamedTuple):
    stage: StageRun
    outlet: Outlet
    chunk: Chunk


class RunningRequest:
    """Implements engines.requests.RequestStream and engines.graph.attempt.Owner."""

    def __init__(
        self, request: Request, connectors: Connectors, scope: str, admission: Admission, clock: Callable[[], float]
    ) -> None:
        """`scope` names its input among the payloads of this process. `open` starts it."""
        self.request = request
        self.outcome: Outcome | None = None
        self.attempts: list[Attempt] = []
        self._connectors = connectors
        self._scope = scope
        self._admission = admission
        self._clock = clock
        self._submitted_at = clock()
        self._failure: RequestFailed | None = None
        self._put = 0
        self._put_before = 0
        """By earlier attempts."""
        self._input_ended = False
        self._kept: list[tuple[Payload, bool]] | None = []
        """The input so far, while nothing of the output has been read; None: there will be no second try."""
        self._kept_bytes = 0
        self._deliveries: deque[Waiting] = deque()  # bounded by the stages' windows: a stage waits for what is popped
        self._news = asyncio.Event()
        self._over = asyncio.Event()

    @property
    def is_over(self) -> bool:
        """Its outcome is known, and no worker works on it."""
        return self.outcome is not None and all(attempt.settled.is_set() for attempt in self.attempts)

    def open(self) -> None:
        """Raises RequestFailed."""
        self.attempts.append(self._admission.open(self))
        self._put_before = self._put

    # what the caller does

    async def push(self, payload: Payload, *, final: bool = False) -> None:
        """Raises ValueError after `final`, RequestFailed (invalid) for a payload that is too large."""
        if self._input_ended:
            raise ValueError(f"request {self.request.request_id!r}: input after its final input")
        await self._room()
        if self.outcome is not None:
            return
        self._input_ended = final
        try:
            self._offer(payload, final)
        except (ValueError, OverflowError) as unsendable:  # too large, or text that is no Unicode, or a number beyond 64 bits
            self.fail(ErrorKind.INVALID, self.request.entry, f"input: {unsendable}")
            raise self._failed() from unsendable
        self._keep(payload, final)

    def __aiter__(self) -> AsyncIterator[Delivery]:
        return self

    async def __anext__(self) -> Delivery:
        """Being cancelled loses no delivery."""
        while True:
            waiting = await self._next()
            if (payload := await self._payload(waiting)) is not None:
                break
        self._deliveries.popleft()
        self._kept = None
        waiting.outlet.passed += 1
        waiting.stage.grant()
        chunk = waiting.chunk
        return Delivery(waiting.outlet.output, chunk.stage, chunk.seq, payload, chunk.pts, chunk.final, chunk.timing)

    def fail(self, kind: ErrorKind, stage: str, message: str) -> None:
        """End it on somebody else's behalf; what has come of stages that are done can still be read."""
        self._attempt.fail(kind, stage, message)

    async def abort(self) -> None:
        self._deliveries.clear()
        self._attempt.forsake()
        self._end(Outcome.ABORTED)
        self._attempt.end()
        for attempt in self.attempts:
            await attempt.settled.wait()

    def timing(self) -> Mapping[str, StageTiming]:
        return self._attempt.timing()

    async def __aenter__(self) -> "RunningRequest":
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.abort()

    # what its attempt tells

    def delivered(self, stage: StageRun, outlet: Outlet, chunk: Chunk) -> None:
        self._deliveries.append(Waiting(stage, outlet, chunk))
        self._news.set()

    def completed(self) -> None:
        self._end(Outcome.COMPLETED)

    def failed(self, kind: ErrorKind, stage: str, message: str) -> None:
        self._failure = RequestFailed(kind, stage, message)
        self._end(Outcome.FAILED)

    def lost(self, stage: str, worker: str) -> None:
        """Try once more elsewhere when nobody has seen anything of the first try yet."""
        reason = f"worker {worker!r} was lost"
        if self._kept is None or len(self.attempts) > 1:
            self.failed(ErrorKind.REPLICA_LOST, stage, reason)
            return
        self._deliveries.clear()
        self._attempt.forsake()  # stages of it that are done keep for us what we have not read
        try:
            self.open()
            for payload, final in self._kept:
                self._offer(payload, final)
        except (RequestFailed, ValueError, OverflowError) as nowhere:  # the others hear of the loss whatever this one meets
            self.failed(ErrorKind.REPLICA_LOST, stage, f"{reason}, and no other replica takes over: {nowhere}")
            self._attempt.end()

    # its parts

    @property
    def _attempt(self) -> Attempt:
        return self.attempts[-1]

    async def _room(self) -> None:
        """Wait until the entry stage takes more; where that is may change meanwhile."""
        attempt: Attempt | None = None
        while attempt is not self._attempt:
            attempt = self._attempt
            link = attempt.stages[self.request.entry].link
            if not link.has_room:
                await first_of(link.room(), self._over.wait())
            await attempt.intake(self.request.entry).room()

    def _offer(self, payload: Payload, final: bool) -> None:
        entry = self._attempt.stages[self.request.entry]
        intake = self._attempt.intake(self.request.entry)
        self._connectors.cleanup(self._scope, before=self._put_before + intake.passed)
        content = self._connectors.named(entry.fed_with).put(Key(self._scope, self._put), payload)
        self._put += 1
        intake.offer(content, final)

    def _keep(self, payload: Payload, final: bool) -> None:
        if self._kept is not None:
            self._kept.append((payload, final))
            self._kept_bytes += payload.nbytes + len(payload.text)
            if len(self._kept) > KEPT_INPUTS or self._kept_bytes > KEPT_BYTES:
                self._kept = None

    async def _next(self) -> Waiting:
        while not self._deliveries:
            if self._failure is not None:
                raise self._failed()
            if self.outcome is not None:
                raise StopAsyncIteration
            self._news.clear()
            await self._news.wait()
        return self._deliveries[0]

    async def _payload(self, waiting: Waiting) -> Payload | None:
        """None: while it was fetched the delivery was taken back, by an abort or because the request begins anew."""
        content = waiting.chunk.content
        try:
            payload = self._connectors.read(content)
            payload = await self._connectors.get(content) if payload is None else payload
        except PayloadLost as lost:
            if self._is_next(waiting):
                self._lose(waiting.stage.stage, lost)
            return None
        return payload if self._is_next(waiting) else None

    def _is_next(self, waiting: Waiting) -> bool:
        return bool(self._deliveries) and self._deliveries[0] is waiting

    def _lose(self, stage: str, lost: PayloadLost) -> None:
        """What has come cannot be read; its attempt may have ended long ago."""
        self._deliveries.clear()
        self.fail(ErrorKind.REPLICA_LOST, stage, str(lost))
        self._failure = self._failure or RequestFailed(ErrorKind.REPLICA_LOST, stage, str(lost))

    def _end(self, outcome: Outcome) -> None:
        if self.outcome is None:
            self.outcome = outcome
            self._kept = None
            self._connectors.cleanup(self._scope)
            self._over.set()
            self._news.set()
            self._admission.ended(self, outcome)

    def _failed(self) -> RequestFailed:
        """A fresh exception, so that one caller's traceback does not grow on another's."""
        assert self._failure is not None
        return RequestFailed(self._failure.kind, self._failure.stage, self._failure.message)
