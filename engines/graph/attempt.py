"""One try of a request on chosen replicas: routes chunks between its stages and to its owner, and ends exactly once.

Everything that moves it is a plain call from the orchestrator, so there is no task of its own to leak.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import Protocol

from engines.chunks import Chunk
from engines.graph.stage_run import WINDOW_CHUNKS, Intake, Outlet, StageRun
from engines.graph.worker_link import WorkerLink
from engines.messages.to_gateway import ErrorKind
from engines.messages.to_worker import Abort
from engines.requests import Request, StageTiming

ABORT_LIMIT_S = 2.0
"""How long a worker may take to acknowledge an abort before the request ends without it."""

log = logging.getLogger(__name__)


class Owner(Protocol):
    """Hears how its attempt goes; answers at once. After `completed`, `failed` or `lost` it hears nothing more."""

    def delivered(self, stage: StageRun, outlet: Outlet, chunk: Chunk) -> None: ...

    def completed(self) -> None:
        """Every wanted output has had its final chunk."""
        ...

    def failed(self, kind: ErrorKind, stage: str, message: str) -> None: ...

    def lost(self, stage: str, worker: str) -> None:
        """A replica died under it. What survives is being aborted."""
        ...


class Attempt:
    """`stages` in the pipeline's order. `settled` is set once no worker works on it, and `on_settled` called, once."""

    def __init__(
        self,
        wire_id: str,
        request: Request,
        stages: dict[str, StageRun],
        owner: Owner,
        clock: Callable[[], float],
        on_settled: Callable[["Attempt"], None],
    ) -> None:
        self.wire_id = wire_id
        self.request_id = request.request_id
        self.stages = stages
        self.given_up = 0
        self.settled = asyncio.Event()
        self._stamp = request.fence, request.epoch
        self._owner = owner
        self._clock = clock
        self._started_at = clock()
        self._on_settled = on_settled
        self._ended = False
        self._unacknowledged: set[WorkerLink] = set()
        self._abort_limit: asyncio.TimerHandle | None = None

    def intake(self, stage: str) -> Intake:
        """The caller's way in."""
        return self.stages[stage].intakes[""]

    def timing(self) -> Mapping[str, StageTiming]:
        return {name: stage.timing() for name, stage in self.stages.items()}

    def end(self) -> None:
        """Stop all stages side by side. What its owner has not read yet of finished stages stays readable. Idempotent."""
        if self._ended:
            return
        self._ended = True
        for run in self.stages.values():
            run.close_intakes()
        for run in self.stages.values():
            released = run.grant()
            if (released or not run.done) and not run.link.is_lost:
                self._unacknowledged.add(run.link)
        unread = tuple(run.stage for run in self.stages.values() if run.done and run.holds_payloads)
        for link in self._unacknowledged:
            link.send(Abort(self.wire_id, unread))
        if self._unacknowledged:
            self._abort_limit = asyncio.get_running_loop().call_later(ABORT_LIMIT_S, self._give_up)
        else:
            self._settle()

    def forsake(self) -> None:
        """Its owner reads nothing more."""
        for stage in self.stages.values():
            stage.forsake()

    # what the workers say

    def emitted(self, link: WorkerLink, chunk: Chunk) -> None:
        stage = self._of(link, chunk.stage)
        if stage is None or (chunk.fence, chunk.epoch) != self._stamp:
            return
        if chunk.seq != stage.received:
            self.fail(ErrorKind.ENGINE, stage.stage, f"chunk out of order: expected seq {stage.received}, got {chunk.seq}")
            return
        if not stage.may_emit:
            self.fail(ErrorKind.ENGINE, stage.stage, f"chunk {chunk.seq} exceeds the window of {WINDOW_CHUNKS}")
            return
        stage.note(chunk, (self._clock() - self._started_at) * 1000)
        for target in stage.targets:
            target.intakes[stage.stage].offer(chunk.content, chunk.final)
        for outlet in stage.outlets:
            self._owner.delivered(stage, outlet, chunk)
        if chunk.final:
            self._finish(stage)

    def taken(self, link: WorkerLink, name: str, source: str, count: int) -> None:
        if (stage := self._of(link, name)) and source in stage.intakes:
            stage.intakes[source].taken(count)
            self._grant_upstream(source)

    def failed(self, link: WorkerLink, name: str, kind: ErrorKind, message: str) -> None:
        if stage := self._of(link, name):
            stage.finish()
            self.fail(kind, name, message)

    def fail(self, kind: ErrorKind, stage: str, message: str) -> None:
        if not self._ended:
            self._owner.failed(kind, stage, message)
            self.end()

    def acknowledged(self, link: WorkerLink) -> None:
        self._unacknowledged.discard(link)
        if self._ended and not self._unacknowledged:
            self._settle()

    def lost(self, link: WorkerLink) -> None:
        for stage in self.stages.values():
            if stage.link is link and (stage.holds_payloads or not stage.done):
                stage.finish()
                self._lose(stage.stage, link.worker)
        self.acknowledged(link)

    # its end

    def _lose(self, stage: str, worker: str) -> None:
        if not self._ended:
            self.end()
            self._owner.lost(stage, worker)

    def _finish(self, stage: StageRun) -> None:
        stage.finish()
        for source in stage.intakes:
            self._grant_upstream(source)
        if not self._ended and all(run.done for run in self.stages.values() if run.outlets):
            self._owner.completed()
            self.end()

    def _give_up(self) -> None:
        names = ", ".join(sorted(link.worker for link in self._unacknowledged))
        log.warning("request %s: no answer to its abort from %s within %g s", self.wire_id, names, ABORT_LIMIT_S)
        self.given_up = len(self._unacknowledged)
        self._unacknowledged.clear()
        self._settle()

    def _settle(self) -> None:
        if self.settled.is_set():
            return
        if self._abort_limit is not None:
            self._abort_limit.cancel()
        self.settled.set()
        self._on_settled(self)

    def _of(self, link: WorkerLink, name: str) -> StageRun | None:
        """The stage when it still runs and this worker runs it; what comes late or from elsewhere concerns nobody."""
        stage = self.stages.get(name)
        return stage if stage and stage.link is link and not stage.done and not self._ended else None

    def _grant_upstream(self, source: str) -> None:
        if source:
            self.stages[source].grant()
