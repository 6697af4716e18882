"""Starts the workers of a deployment on this host, and starts them again when they end."""

import asyncio
import logging
import os
import random
import tempfile
from collections.abc import Coroutine
from dataclasses import dataclass

import msgspec

from engines.deployment import GraphSettings
from engines.logs import LogStyle
from engines.messages.framing import FrameError
from engines.messages.to_gateway import StageState, StageStatus
from engines.orchestrator import Orchestrator
from engines.run_folder import run_folder
from engines.worker.spec import WorkerSpec
from engines.worker_link import WorkerLink
from engines.worker_process import WorkerProcess
from engines.worker_specs import worker_specs

HEARTBEAT_S = 5.0
HANG_LIMIT_S = 15.0
"""A worker answers within milliseconds, its loop runs no model; the rest is room for a machine that swaps."""
LONGEST_PLACE_BYTES = 50
"""A socket's path has room for 107 bytes: for this, 18 of our own folder's name and 37 of a socket of vLLM's."""

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

    def stage_statuses(self) -> list[StageStatus]:
        if self.link is not None and not self.link.is_lost:
            return list(self.link.stages.values())
        if self.unloadable:
            return list(self.unloadable)
        state = StageState.FAILED if self.hopeless else StageState.LOADING
        return [StageStatus(stage.stage, state, stage.slots, self.note) for stage in self.spec.stages]

    def all_are(self, state: StageState) -> bool:
        return all(status.state is state for status in self.stage_statuses())


class LocalLauncher:
    """`run` is its owner task; cancelling it stops every worker."""

    def __init__(
        self,
        settings: GraphSettings,
        orchestrator: Orchestrator,
        server: str,
        *,
        backoff: Backoff,
        draw: random.Random,
        logs: LogStyle,
    ) -> None:
        self.workers = [LaunchedWorker(spec) for spec in worker_specs(settings, logs)]
        self._orchestrator = orchestrator
        self._server = server
        self._backoff = backoff
        self._draw = draw

    async def run(self) -> None:
        with run_folder(place_for_sockets()) as folder:
            async with asyncio.TaskGroup() as group:
                for worker in self.workers:
                    worker.spec = msgspec.structs.replace(worker.spec, socket=f"{folder}/{worker.spec.name}.sock")
                    group.create_task(self._supervise(worker), name=f"supervise {worker.spec.name}")

    def look(self) -> None:
        """Some stage's status has changed. A worker that could load none of its stages is ended, to be tried again later."""
        for worker in self.workers:
            if worker.link is not None:
                if worker.all_are(StageState.READY):
                    worker.became_ready, worker.note, worker.unloadable = True, "", ()
                if worker.all_are(StageState.FAILED):
                    worker.unloadable = tuple(worker.stage_statuses())
                    worker.fault = "it can load none of its stages"
                    worker.link.close()

    async def _supervise(self, worker: LaunchedWorker) -> None:
        while True:
            try:
                await self._run_once(worker)
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

    async def _run_once(self, worker: LaunchedWorker) -> None:
        """One life of the worker, until it exits, its connection ends or it hangs."""
        worker.starts += 1
        worker.became_ready = False
        worker.fault = ""
        worker.note = worker.note or "starting"
        async with WorkerProcess.start(worker.spec) as process:
            worker.process = process
            await _first_of(self._serve(worker), _hangs(worker), process.exited())
            worker.process = None
        if not worker.fault:
            worker.unloadable = ()
        worker.note = worker.fault or process.last_words()

    async def _serve(self, worker: LaunchedWorker) -> None:
        try:
            worker.link = await WorkerLink.connect(worker.spec.socket, self._server)
            await self._orchestrator.serve(worker.link)
        except FrameError as nonsense:
            worker.fault = str(nonsense)
        except OSError:
            pass  # the process is gone, and its last words say why
        finally:
            worker.link = None
            worker.note = worker.note or "its connection has ended"


def place_for_sockets() -> str:
    """Where temporary files go, unless a socket in there would get too long a path."""
    place = tempfile.gettempdir()
    return place if len(os.fsencode(place)) <= LONGEST_PLACE_BYTES else "/tmp"


async def _first_of(*ends: Coroutine[None, None, None]) -> None:
    tasks = {asyncio.create_task(end) for end in ends}
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


async def _hangs(worker: LaunchedWorker) -> None:
    """Returns once a worker that has been ready does not answer any more. Before that, loading may hold up its loop."""
    while True:
        await asyncio.sleep(HEARTBEAT_S)
        if worker.link is None or not worker.became_ready:
            continue
        try:
            async with asyncio.timeout(HANG_LIMIT_S):
                await worker.link.report()
        except TimeoutError:
            worker.fault = f"it has not answered for {HANG_LIMIT_S:g} s"
            return
        except ConnectionError:
            return
