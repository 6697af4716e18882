"""Runs the workers of a deployment on this host: each has a supervisor, and all of them one folder for their sockets."""

import asyncio
import random

import msgspec

from engines.deployment import GraphSettings
from engines.graph.orchestrator import Orchestrator
from engines.launching.liveness import Patience
from engines.launching.run_folder import place_for_sockets, run_folder
from engines.launching.supervision import Backoff, LaunchedWorker, Supervisor
from engines.launching.worker_specs import worker_specs
from engines.logs import LogStyle


class LocalLauncher:
    """`run` is its owner task; cancelling it stops every worker. `shares`: gateways other than this one connect to them, too, at
    the sockets of their specs, which are there once `placed` is set."""

    def __init__(
        self,
        settings: GraphSettings,
        orchestrator: Orchestrator,
        server: str,
        *,
        backoff: Backoff,
        draw: random.Random,
        logs: LogStyle,
        patience: Patience,
        shares: bool = False,
    ) -> None:
        self.workers = [LaunchedWorker(spec) for spec in worker_specs(settings, logs)]
        self.placed = asyncio.Event()
        self._shares = shares
        self._orchestrator = orchestrator
        self._server = server
        self._backoff = backoff
        self._draw = draw
        self._patience = patience

    async def run(self) -> None:
        with run_folder(place_for_sockets()) as folder:
            async with asyncio.TaskGroup() as group:
                for worker in self.workers:
                    socket = f"{folder}/{worker.spec.name}.sock"
                    worker.spec = msgspec.structs.replace(worker.spec, socket=socket, is_shared=self._shares)
                    group.create_task(self._supervisor(worker).run(), name=f"supervise {worker.spec.name}")
                self.placed.set()

    def look(self) -> None:
        """Some stage's status has changed."""
        for worker in self.workers:
            worker.look()

    def _supervisor(self, worker: LaunchedWorker) -> Supervisor:
        return Supervisor(
            worker,
            self._orchestrator,
            self._server,
            backoff=self._backoff,
            draw=self._draw,
            patience=self._patience,
        )
