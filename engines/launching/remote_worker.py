"""A worker that somebody else runs, perhaps on another host, perhaps for several gateways: connected to, and watched."""

import asyncio
import contextlib
import logging
import random

from engines.deployment import GraphSettings
from engines.graph.orchestrator import Orchestrator
from engines.graph.worker_link import WorkerLink
from engines.launching import liveness
from engines.launching.liveness import Condition, Patience, RealTime, Time, until_lost
from engines.launching.supervision import Backoff
from engines.messages.to_gateway import StageState, StageStatus
from engines.network.addresses import Address, UnixAddress, address
from engines.network.handshake import Purpose, dial
from engines.network.secret_file import read_secret
from engines.site import this_host

CONNECT_LIMIT_S = 10.0
"""To a worker's greeting. One that is stopped is connected to by its kernel, and then says nothing."""

log = logging.getLogger(__name__)


class RemoteWorker:
    """`run` is its owner task. `starts` counts connections; `note` says why it does not serve."""

    pid = None

    def __init__(
        self,
        name: str,
        place: Address,
        stages: tuple[StageStatus, ...],
        *,
        secret: bytes,
        backoff: Backoff,
        draw: random.Random,
        patience: Patience,
        time: Time | None = None,
    ) -> None:
        """`stages` are those that it should run, with the slots that it should give them."""
        self.name = name
        self.starts = 0
        self.note = "not connected yet"
        self.link: WorkerLink | None = None
        self._place = place
        self._stages = stages
        self._secret = secret
        self._backoff = backoff
        self._draw = draw
        self._patience = patience
        self._time = time or RealTime()
        self._failures = 0
        """Tries to connect in a row that failed."""

    def stage_statuses(self) -> list[StageStatus]:
        if self.link is None or self.link.is_lost:
            state = StageState.FAILED if self._backoff.is_hopeless(self._failures) else StageState.LOADING
            return [StageStatus(stage.stage, state, stage.slots, self.note) for stage in self._stages]
        missing = f"the worker at {self._place} does not run it"
        return [
            self.link.stages.get(stage.stage, StageStatus(stage.stage, StageState.FAILED, stage.slots, missing))
            for stage in self._stages
        ]

    async def run(self, orchestrator: Orchestrator, server: str) -> None:
        """Until cancelled. `server` is what this gateway calls itself."""
        logged = ""
        while True:
            try:
                await self._connected(orchestrator, server)
            except OSError as lost:
                self.note = f"{self._place}: {str(lost) or 'it does not greet'}"
            orchestrator.on_status()
            if self.note != logged or self._failures == 1:
                log.warning("worker %s is not there: %s; it is tried again", self.name, self.note)
            logged = self.note
            await asyncio.sleep(self._backoff.delay_s(self._failures, self._draw))

    async def _connected(self, orchestrator: Orchestrator, server: str) -> None:
        """One connection. Raises OSError when it fails, or ends by nonsense."""
        self._failures += 1
        async with asyncio.timeout(CONNECT_LIMIT_S):
            link = await self._open(server)
        with contextlib.closing(link):
            if link.worker != self.name:
                raise ConnectionRefusedError(f"expected worker {self.name!r} there, got {link.worker!r}")
            self.starts += 1
            self._failures = 1
            self.note, self.link = "", link
            watching = asyncio.create_task(self._watch(link))
            try:
                await orchestrator.serve(link)
                self.note = self.note or f"{self._place}: its connection has ended"
            finally:
                self.link = None
                watching.cancel()

    async def _open(self, server: str) -> WorkerLink:
        if isinstance(self._place, UnixAddress):
            return await WorkerLink.connect(self._place.path, server)
        return await WorkerLink.over((await dial(self._place, self._secret, Purpose.CONTROL)).detached(), server)

    async def _watch(self, link: WorkerLink) -> None:
        self.note = f"{self._place}: {await until_lost(_Life(link), self._patience, self._time)}"
        link.close()


class _Life:
    """A connection as liveness watches it. A process of this host is looked at, whoever started it; of one elsewhere nothing is
    known but what it says."""

    limit_bytes = float("inf")

    def __init__(self, link: WorkerLink) -> None:
        self._link = link
        self._pid = link.pid if link.site.host == this_host() else None
        self.ask = link.ask
        self.answered = link.answered
        self.called = link.called

    @property
    def heard_at(self) -> float:
        return self._link.heard_at

    @property
    def resident_bytes(self) -> int:
        return self._link.resident_bytes

    @property
    def may_be_slow(self) -> bool:
        return any(status.state is StageState.LOADING for status in self._link.stages.values())

    def condition(self) -> Condition:
        return Condition.RUNNING if self._pid is None else liveness.condition(self._pid)


def remote_workers(settings: GraphSettings, *, backoff: Backoff, draw: random.Random, patience: Patience) -> list[RemoteWorker]:
    """Those of the deployment that have an address. Raises ValueError when the secret cannot be read."""
    secret = read_secret(settings.secret_file)
    return [
        RemoteWorker(
            name,
            address(worker.address),
            tuple(StageStatus(stage, StageState.LOADING, settings.stages[stage].slots) for stage in worker.stages),
            secret=secret,
            backoff=backoff,
            draw=draw,
            patience=patience,
        )
        for name, worker in settings.workers.items()
        if worker.address
    ]
