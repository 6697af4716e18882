"""A runtime with real worker processes that run fakes.echo_model: `first` in worker `one`, `second` in worker `two`."""

import asyncio
import random
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import TypeAlias

from engines.deployment import GraphSettings, StageSettings
from engines.launching.liveness import Patience
from engines.launching.supervision import Backoff
from engines.launching.worker_settings import WorkerSettings
from engines.payloads import Payload
from engines.requests import Request, RequestStream
from engines.runtime import Runtime
from engines.worker.spec import BatchSpec
from fakes.pipelines import ECHOES

AT_ONCE = Backoff(first_s=0.0, limit_s=0.0)
START_LIMIT_S = 20


class Watched(Runtime):
    """Can be waited for."""

    def __init__(self, settings: GraphSettings, backoff: Backoff, patience: Patience, *, shares_workers: bool = False) -> None:
        self._changed = asyncio.Event()
        super().__init__(
            settings,
            backoff=backoff,
            patience=patience,
            draw=random.Random(1),
            on_status=self._changed.set,
            shares_workers=shares_workers,
        )

    async def until(self, holds: Callable[["Watched"], bool]) -> None:
        async with asyncio.timeout(START_LIMIT_S):
            while not holds(self):
                self._changed.clear()
                await self._changed.wait()

    async def back(self, starts: int = 2) -> None:
        """Worker `one` has been started so many times, and everything is ready."""
        await self.until(lambda runtime: runtime.worker_statuses()[0].starts == starts and runtime.ready.is_set())

    def pids(self) -> dict[str, int | None]:
        return {worker.worker: worker.pid for worker in self.worker_statuses()}

    def pid(self, worker: str) -> int:
        found = self.pids()[worker]
        assert found is not None
        return found


Launch: TypeAlias = Callable[..., AbstractAsyncContextManager[Watched]]
"""Takes a Backoff, a Patience, a WorkerSettings of worker `one` and the options of stage `first`."""

ONE = WorkerSettings(stages=("first",))
PATIENT = Patience()


def launcher(folder: Path) -> Launch:
    @asynccontextmanager
    async def launch(
        backoff: Backoff = AT_ONCE,
        patience: Patience = PATIENT,
        one: WorkerSettings = ONE,
        **options: str | bool,
    ) -> AsyncGenerator[Watched]:
        runtime = Watched(settings(folder, one, **options), backoff, patience)
        async with runtime.running():
            yield runtime

    return launch


def settings(folder: Path, one: WorkerSettings = ONE, **options: str | bool) -> GraphSettings:
    def stage(**own: str | bool) -> StageSettings:
        return StageSettings(model="fakes.echo_model:Echo", directory=str(folder), batch=BatchSpec(max=4), options=dict(own))

    return GraphSettings(
        pipeline=ECHOES.name,
        workers={"one": one, "two": WorkerSettings(stages=("second",))},
        stages={"first": stage(**options), "second": stage()},
        voices={},
    )


def request(name: str, output: str = "twice", entry: str = "first") -> Request:
    return Request(request_id=name, entry=entry, outputs=(output,), parameters={})


async def ask(stream: RequestStream, *texts: str) -> list[str]:
    async with stream:
        for text in texts:
            await stream.push(Payload(text=text))
        await stream.push(Payload(), final=True)
        return [delivery.payload.text async for delivery in stream]


def is_there(path: str | Path) -> bool:
    return Path(path).exists()


def is_alive(pid: int) -> bool:
    """Whether the process exists and is more than an exit status that nobody has fetched."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False
