"""A running request: routes its chunks between its stages and to its caller, and ends exactly once.

Everything that moves it is a plain call from the orchestrator, so there is no task of its own to leak.
"""

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping

from engines.chunks import Chunk
from engines.connectors.contents import Key
from engines.connectors.inline import InlineConnector
from engines.graph_counters import Outcome
from engines.messages.framing import FrameTooLarge
from engines.messages.to_gateway import ErrorKind
from engines.messages.to_worker import Abort
from engines.payloads import Payload
from engines.requests import Delivery, Request, RequestFailed, StageTiming
from engines.stage_run import WINDOW_CHUNKS, StageRun
from engines.worker_link import WorkerLink

ABORT_LIMIT_S = 2.0
"""How long a worker may take to acknowledge an abort before the request ends without it."""

log = logging.getLogger(__name__)


class RunningRequest:
    """Implements engines.requests.RequestStream.

    `outcome` is None while it runs; `settled` once no worker holds anything of it. `on_settled` is called then, once.
    """

    def __init__(
        self,
        request: Request,
        stages: dict[str, StageRun],
        upstream: Mapping[str, str],
        connector: InlineConnector,
        clock: Callable[[], float],
        on_settled: Callable[["RunningRequest"], None],
    ) -> None:
        self.request = request
        self.stages = stages
        self.outcome: Outcome | None = None
        self.given_up = 0
        self.upstream = upstream
        self._connector = connector
        self._clock = clock
        self._on_settled = on_settled
        self._submitted_at = clock()
        self._failure: RequestFailed | None = None
        self._input_ended = False
        self._deliveries: deque[Delivery] = deque()  # bounded by the stages' windows: a stage waits for what is popped
        self._news = asyncio.Event()
        self._unacknowledged: set[WorkerLink] = set()
        self._abort_limit: asyncio.TimerHandle | None = None
        self._settled = asyncio.Event()

    # what the caller does

    async def push(self, payload: Payload, *, final: bool = False) -> None:
        """Raises ValueError after `final`, RequestFailed (invalid) for a payload that is too large."""
        if self._input_ended:
            raise ValueError(f"request {self.request.request_id!r}: input after its final input")
        entry = self.stages[self.request.entry]
        await entry.link.room()
        await entry.intake.room()
        if self.outcome is not None:
            return
        self._input_ended = final
        content = self._connector.put(Key(self._scope, 0), payload)
        try:
            entry.intake.offer(content, final)
        except FrameTooLarge as too_large:
            self.fail(ErrorKind.INVALID, entry.stage, f"input: {too_large}")
            raise self._failed() from too_large

    def __aiter__(self) -> AsyncIterator[Delivery]:
        return self

    async def __anext__(self) -> Delivery:
        while not self._deliveries:
            if self._failure is not None:
                raise self._failed()
            if self.outcome is not None:
                raise StopAsyncIteration
            self._news.clear()
            await self._news.wait()
        delivery = self._deliveries.popleft()
        stage = self.stages[delivery.stage]
        for outlet in stage.outlets:
            outlet.passed += outlet.output == delivery.output
        stage.grant()
        return delivery

    async def abort(self) -> None:
        self._deliveries.clear()
        self._end(Outcome.ABORTED)
        await self._settled.wait()

    def timing(self) -> Mapping[str, StageTiming]:
        return {name: stage.timing() for name, stage in self.stages.items()}

    async def __aenter__(self) -> "RunningRequest":
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.abort()

    # what the workers say

    def emitted(self, link: WorkerLink, chunk: Chunk) -> None:
        stage = self._of(link, chunk.stage)
        if stage is None or (chunk.fence, chunk.epoch) != (self.request.fence, self.request.epoch):
            return
        if chunk.seq != stage.received:
            self.fail(ErrorKind.ENGINE, stage.stage, f"chunk out of order: expected seq {stage.received}, got {chunk.seq}")
            return
        if not stage.may_emit:
            self.fail(ErrorKind.ENGINE, stage.stage, f"chunk {chunk.seq} exceeds the window of {WINDOW_CHUNKS}")
            return
        payload = self._connector.read(chunk.content)
        empty = chunk.final and not payload.text and not payload.arrays
        stage.note(chunk, (self._clock() - self._submitted_at) * 1000, empty=empty)
        for target in stage.targets:
            target.intake.offer(chunk.content, chunk.final)
        for outlet in stage.outlets:
            self._deliveries.append(
                Delivery(outlet.output, stage.stage, chunk.seq, payload, chunk.pts, chunk.final, chunk.timing)
            )
        if chunk.final:
            self._finish(stage)
        self._news.set()

    def taken(self, link: WorkerLink, name: str, count: int) -> None:
        if stage := self._of(link, name):
            stage.intake.taken(count)
            self._grant_upstream(name)

    def failed(self, link: WorkerLink, name: str, kind: ErrorKind, message: str) -> None:
        if stage := self._of(link, name):
            stage.finish()
            self.fail(kind, name, message)

    def fail(self, kind: ErrorKind, stage: str, message: str) -> None:
        if self.outcome is None:
            self._failure = RequestFailed(kind, stage, message)
            self._end(Outcome.FAILED)

    def acknowledged(self, link: WorkerLink) -> None:
        self._unacknowledged.discard(link)
        if self.outcome is not None and not self._unacknowledged:
            self._settle()

    def lost(self, link: WorkerLink) -> None:
        for stage in self.stages.values():
            if stage.link is link and not stage.done:
                stage.finish()
                self.fail(ErrorKind.REPLICA_LOST, stage.stage, f"worker {link.worker!r} was lost")
        self.acknowledged(link)

    # its end

    def _finish(self, stage: StageRun) -> None:
        stage.finish()
        self._grant_upstream(stage.stage)
        if all(run.done for run in self.stages.values() if run.outlets):
            self._end(Outcome.COMPLETED)

    def _end(self, outcome: Outcome) -> None:
        if self.outcome is not None:
            return
        self.outcome = outcome
        self._news.set()
        self._unacknowledged = {run.link for run in self.stages.values() if not run.done and not run.link.is_lost}
        for stage in self.stages.values():
            stage.intake.close()
        for link in self._unacknowledged:
            link.send(Abort(self.request.request_id))
        if self._unacknowledged:
            self._abort_limit = asyncio.get_running_loop().call_later(ABORT_LIMIT_S, self._give_up)
        else:
            self._settle()

    def _give_up(self) -> None:
        names = ", ".join(sorted(link.worker for link in self._unacknowledged))
        log.warning("request %s: no answer to its abort from %s within %g s", self.request.request_id, names, ABORT_LIMIT_S)
        self.given_up = len(self._unacknowledged)
        self._unacknowledged.clear()
        self._settle()

    def _settle(self) -> None:
        if self._settled.is_set():
            return
        if self._abort_limit is not None:
            self._abort_limit.cancel()
        self._connector.cleanup(self._scope)
        self._settled.set()
        self._on_settled(self)

    def _failed(self) -> RequestFailed:
        """A fresh exception, so that one caller's traceback does not grow on another's."""
        assert self._failure is not None
        return RequestFailed(self._failure.kind, self._failure.stage, self._failure.message)

    def _of(self, link: WorkerLink, name: str) -> StageRun | None:
        """The stage when it still runs and this worker runs it; what comes late or from elsewhere concerns nobody."""
        stage = self.stages.get(name)
        return stage if stage and stage.link is link and not stage.done and self.outcome is None else None

    def _grant_upstream(self, name: str) -> None:
        if upstream := self.upstream.get(name):
            self.stages[upstream].grant()

    @property
    def _scope(self) -> str:
        return f"{self.request.request_id}/{self.request.fence}"
