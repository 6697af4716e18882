"""One node, life after life: started, watched, given up in the store when it has died, and started again."""

import asyncio
import logging
import random
import socket
from collections.abc import Callable, Sequence

from engines.launching.supervision import Backoff
from realtime.departed import Leases, give_up
from realtime.front.messages import NodeSpec, Told
from realtime.front.node_process import COMMAND, NodeProcess
from realtime.handed import End

BACKOFF = Backoff()
END_GRACE_S = 10.0
"""For a node that should have ended by itself."""

log = logging.getLogger(__name__)


class SupervisedNode:
    """`run` is its owner task. `spec` is asked at each start. `drain_s` is how long a node may take to drain."""

    def __init__(
        self,
        spec: NodeSpec,
        store: Leases,
        drain_s: float,
        on_change: Callable[[], None],
        *,
        backoff: Backoff = BACKOFF,
        draw: random.Random | None = None,
        command: Sequence[str] = COMMAND,
    ) -> None:
        self.name = spec.place.node
        self.number = spec.place.number or 1
        self.starts = 0
        self._spec = spec
        self._store = store
        self._drain_s = drain_s
        self._on_change = on_change
        self._backoff = backoff
        self._draw = draw or random.Random()
        self._command = command
        self._process: NodeProcess | None = None
        self._asked_to_end = False
        self._over = asyncio.Event()
        """Set while no process runs or is being started, and the store knows."""
        self._over.set()
        self._wanted = asyncio.Event()
        self._wanted.set()
        self._news = asyncio.Event()
        self._failures = 0
        self._became_ready = False

    @property
    def is_there(self) -> bool:
        return self._process is not None and self._process.is_there

    @property
    def is_ready(self) -> bool:
        return self._process is not None and self._process.is_ready and not self._asked_to_end

    @property
    def load(self) -> int:
        return self._process.load if self._process is not None else 0

    def told(self) -> Told:
        process = self._process
        return Told(
            node=self.name,
            pid=process.pid if process else 0,
            starts=self.starts,
            ready=self.is_ready,
            draining=self._asked_to_end or (process is not None and process.status.draining),
            sessions=process.status.sessions if process else 0,
        )

    def take(self, connection: socket.socket, end: End | None) -> None:
        """The connection is the node's from now on. Raises OSError when it cannot be, and then it stays open."""
        if self._process is None:
            raise ConnectionRefusedError(f"node {self.name} does not run")
        self._process.take(connection, end)

    async def run(self) -> None:
        """Until cancelled, which kills the node."""
        await give_up(self._store, self.name)  # a life that ended with another front
        while True:
            while not self._wanted.is_set():  # also when it was taken back before this task woke
                await self._wanted.wait()
            try:
                ended = await self._one_life()
            except OSError as refused:
                ended = f"it cannot be started: {refused}"
            self._failures = 0 if self._asked_to_end else 1 if self._became_ready else self._failures + 1
            self._over.set()
            if self._asked_to_end:
                log.info("node %s has ended: %s", self.name, ended)
                continue
            delay_s = self._backoff.delay_s(self._failures, self._draw)
            log.error("node %s ended: %s; next start in %.1f s", self.name, ended, delay_s)
            await asyncio.sleep(delay_s)

    async def restart(self, ready_limit_s: float) -> None:
        """Drains, however long that may take, and starts anew; returns when it is ready again. Raises TimeoutError when it is not
        so long after its end."""
        before = self.starts
        self._wanted.set()
        await self._end()
        async with asyncio.timeout(ready_limit_s):
            while not (self.starts > before and self.is_ready):
                self._news.clear()
                await self._news.wait()

    async def stop(self) -> None:
        """Drains; returns when it has ended. It stays away until `restart`."""
        self._wanted.clear()
        await self._end()

    def hurry(self) -> None:
        """Whatever drains ends now."""
        if self._process is not None:
            self._process.ask_to_end()

    async def _end(self) -> None:
        if self._over.is_set():
            return
        self._asked_to_end = True
        self._changed()
        self.hurry()
        try:
            async with asyncio.timeout(self._drain_s + END_GRACE_S):
                await self._over.wait()
        except TimeoutError:
            log.error("node %s has not ended in %.0f s: it is killed", self.name, self._drain_s + END_GRACE_S)
            if self._process is not None:
                self._process.kill()
            await self._over.wait()

    async def _one_life(self) -> str:
        """Returns how it ended. Raises OSError."""
        self._asked_to_end = self._became_ready = False
        self._over.clear()
        self.starts += 1
        self._process = await NodeProcess.start(self._spec, self._changed, self._command)
        if self._asked_to_end:  # while it was being started
            self._process.ask_to_end()
        try:
            status = await self._process.until_over()
        finally:
            self._process = None
            self._changed()
        await give_up(self._store, self.name)
        return f"exit status {status}" if status >= 0 else f"killed by signal {-status}"

    def _changed(self) -> None:
        self._became_ready = self._became_ready or self.is_ready
        self._news.set()
        self._on_change()
