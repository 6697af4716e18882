"""The graph as a whole: workers launched, connected and supervised, requests owned. What sessions and the edge hold on to."""

import asyncio
import contextlib
import os
import random
import secrets
from collections.abc import AsyncGenerator, Callable, Mapping
from typing import Protocol

import msgspec

from engines.connectors.between_hosts import BetweenHosts
from engines.connectors.process import Connectors
from engines.deployment import GraphSettings
from engines.graph.graph_counters import GraphCounters
from engines.graph.orchestrator import Orchestrator
from engines.graph.request_stream import RunningRequest
from engines.graph.worker_link import WorkerLink
from engines.launching.launcher import LocalLauncher
from engines.launching.liveness import Patience
from engines.launching.remote_worker import remote_workers
from engines.launching.sharing import sharing
from engines.launching.supervision import Backoff
from engines.launching.worker_settings import GATEWAY_RING_MB, MIB
from engines.logs import LogStyle
from engines.messages.to_gateway import Report, StageState, StageStatus
from engines.network.secret_file import read_secret
from engines.requests import Request
from engines.site import Site, this_host

REPORT_LIMIT_S = 1.0
"""A worker that does not report within this time is left out of the reports."""


class WorkerStatus(msgspec.Struct, frozen=True):
    """`pid` None: not running at the moment. `note` says why it does not serve."""

    worker: str
    pid: int | None
    starts: int
    note: str
    stages: tuple[StageStatus, ...]


class SupervisedWorker(Protocol):
    """One that the launcher started, or one that somebody else runs."""

    @property
    def name(self) -> str: ...
    @property
    def pid(self) -> int | None: ...
    @property
    def starts(self) -> int: ...
    @property
    def note(self) -> str: ...
    @property
    def link(self) -> WorkerLink | None: ...
    def stage_statuses(self) -> list[StageStatus]: ...


class Runtime:
    """Implements engines.requests.Graph. `ready` is set while every stage of the deployment has a replica that is ready."""

    def __init__(
        self,
        settings: GraphSettings,
        *,
        backoff: Backoff = Backoff(),  # noqa: B008 (a frozen value)
        patience: Patience = Patience(),  # noqa: B008 (likewise)
        draw: random.Random | None = None,
        logs: LogStyle = LogStyle(),  # noqa: B008 (likewise)
        on_status: Callable[[], None] = lambda: None,
        shares_workers: bool = False,
    ) -> None:
        """`on_status` is called whenever a worker or a stage may have changed its state. `shares_workers`: other gateways of this
        host use those that are started here. Raises PipelineError, and ValueError for a secret that cannot be read."""
        self.ready = asyncio.Event()
        self._on_status = on_status
        self._server = f"gateway-{os.getpid()}-{secrets.token_hex(4)}"
        hosts = BetweenHosts(settings.between_hosts, None, read_secret(settings.secret_file), 0)
        self._connectors = Connectors(GATEWAY_RING_MB * MIB, hosts.by_name)
        self._orchestrator = Orchestrator(
            settings.record(),
            settings.stages,
            self._connectors,
            server=self._server,
            site=Site(this_host()),
            wait_ms=settings.queue_ms.by_class(),
            on_status=self._look,
        )
        draw = draw or random.Random()
        self._launcher = LocalLauncher(
            settings,
            self._orchestrator,
            server=self._server,
            backoff=backoff,
            draw=draw,
            logs=logs,
            patience=patience,
            shares=shares_workers,
        )
        self._settings = settings
        self._elsewhere = remote_workers(settings, backoff=backoff, draw=draw, patience=patience)
        self._workers: tuple[SupervisedWorker, ...] = (*self._launcher.workers, *self._elsewhere)

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncGenerator["Runtime"]:
        """Workers run inside; at the end requests are aborted first, then the workers are stopped."""
        async with asyncio.TaskGroup() as group:
            owners = [group.create_task(self._launcher.run(), name="launcher")]
            for worker in self._elsewhere:
                owners.append(group.create_task(worker.run(self._orchestrator, self._server), name=f"connect {worker.name}"))
            try:
                yield self
                await self._orchestrator.drain()
            finally:
                for owner in owners:
                    owner.cancel()
                self._connectors.close()

    async def shared(self) -> GraphSettings:
        """For another gateway of this host: the same graph, with the workers that are started here as ones that somebody else
        runs. Waits until they have their places."""
        await self._launcher.placed.wait()
        return sharing(self._settings, {worker.name: worker.spec.socket for worker in self._launcher.workers})

    def faults(self) -> Mapping[str, str]:
        """What is wrong with the transport of payloads, by worker (this process: `gateway`); empty when nothing is."""
        said = {worker.name: worker.link.fault for worker in self._workers if worker.link is not None}
        return {name: fault for name, fault in {"gateway": self._connectors.health(), **said}.items() if fault}

    async def submit(self, request: Request) -> RunningRequest:
        return await self._orchestrator.submit(request)

    def offers(self, output: str) -> bool:
        return self._orchestrator.offers(output)

    async def drain(self) -> None:
        """Admit nothing more and abort what runs. Idempotent."""
        await self._orchestrator.drain()

    @property
    def counters(self) -> GraphCounters:
        return self._orchestrator.counters

    def active(self) -> Mapping[str, int]:
        """Requests that hold each stage open."""
        return {stage: pool.active() for stage, pool in self._orchestrator.pools.items()}

    def stage_statuses(self) -> tuple[StageStatus, ...]:
        """One for each stage of the deployment: that of its best replica."""
        best: dict[str, StageStatus] = {}
        for worker in self._workers:
            for status in worker.stage_statuses():
                known = best.get(status.stage)
                if known is None or _rank(status) < _rank(known):
                    best[status.stage] = status
        return tuple(best.values())

    def worker_statuses(self) -> tuple[WorkerStatus, ...]:
        return tuple(
            WorkerStatus(
                worker=worker.name,
                pid=worker.pid,
                starts=worker.starts,
                note=worker.note,
                stages=tuple(worker.stage_statuses()),
            )
            for worker in self._workers
        )

    async def reports(self) -> Mapping[str, Report]:
        """What every connected worker counts, by worker; asked of all side by side."""
        answers = await asyncio.gather(*(_report(worker.link) for worker in self._workers))
        return {worker.name: answer for worker, answer in zip(self._workers, answers, strict=True) if answer is not None}

    def _look(self) -> None:
        self._launcher.look()
        if all(status.state is StageState.READY for status in self.stage_statuses()):
            self.ready.set()
        else:
            self.ready.clear()
        self._on_status()


async def _report(link: WorkerLink | None) -> Report | None:
    if link is not None:
        with contextlib.suppress(ConnectionError, TimeoutError):
            async with asyncio.timeout(REPORT_LIMIT_S):
                return await link.report()
    return None


def _rank(status: StageStatus) -> int:
    return (StageState.READY, StageState.LOADING, StageState.FAILED).index(status.state)
