"""One worker of this host, life after life: started, served, watched, and started again when it ends."""

import asyncio
import logging
import random
from dataclasses import dataclass, field

import msgspec

from engines.first_of import first_of
from engines.graph.orchestrator import Orchestrator
from engines.graph.worker_link import WorkerLink
from engines.launching import liveness
from engines.launching.liveness import GB, Condition, Patience, RealTime, Time, until_lost
from engines.launching.worker_process import WorkerProcess
from engines.messages.framing import FrameError
from engines.messages.to_gateway import StageState, StageStatus
from engines.worker.spec import WorkerSpec

log = logging.getLogger(__name__)


class Backoff(msgspec.Struct, frozen=True):
    """After `patience` starts in a row that did not become ready, a worker counts as failed and is retried every `limit_s`."""

    first_s: float = 0.5
    limit_s: float = 30.0
    patience: int = 3

    def is_hopeless(self, failures: int) -> bool:
        return failures >= self.patience

    def delay_s(self, failures: int, draw: random.Random) -> float:
        """Doubles with each failure; jittered down to half, so that workers that fell together do not rise together."""
        full = self.limit_s if self.is_hopeless(failures) else min(self.limit_s, self.first_s * 2 ** (failures - 1))
        return full * draw.uniform(0.5, 1.0)


@dataclass
class LaunchedWorker:
    """`failures`: starts in a row that did not become ready; after too many it is `hopeless`. `link`: while it is connected.
    `note`: why it does not serve; `fault`: what ended its present life before its process did; `unloadable`: its stages, when
    it could load none of them."""

    spec: WorkerSpec
    note: str = ""
    fault: str = ""
    unloadable: tuple[StageStatus, ...] = ()
    starts: int = 0
    failures: int = 0
    hopeless: bool = False
    became_ready: bool = False
    process: WorkerProcess | None = None
    link: WorkerLink | None = None
    connected: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def name(self) -> str:
        return self.spec.name

    @property
    def pid(self) -> int | None:
        return self.process.pid if self.process else None

    def stage_statuses(self) -> list[StageStatus]:
        if self.link is not None and not self.link.is_lost:
            return list(self.link.stages.values())
        if self.unloadable:
            return list(self.unloadable)
        state = StageState.FAILED if self.hopeless else StageState.LOADING
        return [StageStatus(stage.stage, state, stage.slots, self.note) for stage in self.spec.stages]

    def look(self) -> None:
        """Some stage's status has changed. A worker that could load none of its stages is ended, to be tried again later."""
        if self.link is None:
            return
        if self._all_are(StageState.READY):
            self.became_ready, self.note, self.unloadable = True, "", ()
        if self._all_are(StageState.FAILED):
            self.unloadable = tuple(self.stage_statuses())
            self.fault = "it can load none of its stages"
            self.link.close()

    def _all_are(self, state: StageState) -> bool:
        return all(status.state is state for status in self.stage_statuses())


class Supervisor:
    """`run` is the worker's owner task; cancelling it stops the worker."""

    def __init__(
        self,
        worker: LaunchedWorker,
        orchestrator: Orchestrator,
        server: str,
        *,
        backoff: Backoff,
        draw: random.Random,
        patience: Patience,
        time: Time | None = None,
    ) -> None:
        self._worker = worker
        self._orchestrator = orchestrator
        self._server = server
        self._backoff = backoff
        self._draw = draw
        self._patience = patience
        self._time = time or RealTime()

    async def run(self) -> None:
        worker = self._worker
        while True:
            try:
                await self._run_once()
            except OSError as refused:
                worker.note = f"the process cannot be started: {refused}"
            worker.failures = 1 if worker.became_ready else worker.failures + 1
            if worker.unloadable:  # the next try would find the same
                worker.failures = max(worker.failures, self._backoff.patience)
            worker.hopeless = self._backoff.is_hopeless(worker.failures)
            self._orchestrator.on_status()
            delay_s = self._backoff.delay_s(worker.failures, self._draw)
            log.error("worker %s ended: %s; next start in %.1f s", worker.spec.name, worker.note, delay_s)
            await asyncio.sleep(delay_s)

    async def _run_once(self) -> None:
        """One life, until the process exits, its connection ends or it is lost. Callers hear of it before the process is gone."""
        worker = self._worker
        worker.starts += 1
        worker.became_ready = False
        worker.fault = ""
        worker.connected.clear()
        worker.note = worker.note or "starting"
        async with WorkerProcess.start(worker.spec) as process:
            worker.process = process
            for error in await first_of(self._serve(), self._watch(process), process.exited()):
                log.error("worker %s: serving it failed", worker.spec.name, exc_info=error)
            worker.process = None
        if not worker.fault:
            worker.unloadable = ()
        worker.note = worker.fault or process.last_words()

    async def _serve(self) -> None:
        worker = self._worker
        try:
            worker.link = await WorkerLink.connect(worker.spec.socket, self._server)
            worker.connected.set()
            await self._orchestrator.serve(worker.link)
        except FrameError as nonsense:
            worker.fault = str(nonsense)
        except OSError:
            pass  # the process is gone, and its last words say why
        finally:
            worker.link = None
            worker.note = worker.note or "its connection has ended"

    async def _watch(self, process: WorkerProcess) -> None:
        life = _Life(self._worker, process.pid, self._time.now())
        fault = await until_lost(life, self._patience, self._time)
        if life.condition() is not Condition.ENDING:  # else its last words say more
            self._worker.fault = fault
            process.kill()


class _Life:
    """A worker's process and connection, as liveness watches them. Before it is connected, only its process can be looked at."""

    def __init__(self, worker: LaunchedWorker, pid: int, started_at: float) -> None:
        self._worker = worker
        self._pid = pid
        self._started_at = started_at
        self._never = asyncio.Event()

    @property
    def heard_at(self) -> float:
        return self._worker.link.heard_at if self._worker.link else self._started_at

    @property
    def answered(self) -> asyncio.Event:
        return self._worker.link.answered if self._worker.link else self._never

    @property
    def called(self) -> asyncio.Event:
        return self._worker.link.called if self._worker.link else self._worker.connected

    @property
    def resident_bytes(self) -> int:
        return self._worker.link.resident_bytes if self._worker.link else 0

    @property
    def limit_bytes(self) -> float:
        return self._worker.spec.memory_gb * GB if self._worker.spec.memory_gb else float("inf")

    @property
    def may_be_slow(self) -> bool:
        return not self._worker.became_ready

    def ask(self) -> None:
        if self._worker.link:
            self._worker.link.ask()

    def condition(self) -> Condition:
        return liveness.condition(self._pid)
