"""An orchestrator over two fake workers that run the pipeline CASCADE, and short words for what tests do with it."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from engines.connectors.process import Connectors
from engines.graph.orchestrator import Orchestrator
from engines.graph.worker_link import WorkerLink
from engines.parameters import Generation, Parameters, Speech
from engines.payloads import Payload
from engines.requests import Delivery, Request, RequestStream
from engines.site import Site, this_host
from fakes.pipelines import CASCADE
from fakes.remote_payloads import RemotePayloads
from fakes.worker import EMPTY, FakeStage, FakeWorker

SPEECH: dict[str, Parameters] = {"mouth": Speech("joe")}

GENERATION = Generation()


class Bench:
    """An orchestrator with fake workers: `ears` runs ear and mind, `voice` runs mouth.

    `arena_bytes`: everybody's shared memory. `elsewhere`: everybody is on a host of his own, and fetches payloads with this.
    """

    def __init__(self, folder: Path, arena_bytes: int = 0, elsewhere: RemotePayloads | None = None) -> None:
        self.folder = folder
        self._arena_bytes = arena_bytes
        self._elsewhere = elsewhere
        self.ears = self.another("ears", ["ear", "mind"])
        self.voice = self.another("voice", ["mouth"])
        self.statuses_changed = asyncio.Event()
        self.connectors = Connectors(arena_bytes, {elsewhere.name: elsewhere} if elsewhere else None)
        self.orchestrator = Orchestrator(
            CASCADE,
            ("ear", "mind", "mouth"),
            self.connectors,
            site=Site(this_host()),
            on_status=self.statuses_changed.set,
        )
        self.served: dict[str, asyncio.Task[None]] = {}

    def another(self, name: str, stages: list[str]) -> FakeWorker:
        return FakeWorker(self.folder / name, stages, name=name, arena_bytes=self._arena_bytes, elsewhere=self._elsewhere)

    async def settled(self) -> None:
        """Until no worker works on anything."""
        while self.orchestrator.running():  # noqa: ASYNC110 (attempts ring no bell)
            await asyncio.sleep(0)

    @asynccontextmanager
    async def running(self) -> AsyncGenerator["Bench"]:
        async with AsyncExitStack() as stack:
            for worker in (self.ears, self.voice):
                await stack.enter_async_context(worker)
                await self.connect(worker)
            yield self
            await self.orchestrator.drain()
        await asyncio.gather(*self.served.values(), return_exceptions=True)
        self.connectors.close()

    async def connect(self, worker: FakeWorker) -> WorkerLink:
        link = await WorkerLink.connect(worker.socket, "test")
        self.served[worker.name] = asyncio.create_task(self.orchestrator.serve(link))
        await asyncio.sleep(0)
        return link

    def is_empty(self) -> bool:
        pools = self.orchestrator.pools.values()
        return self.orchestrator.running() == 0 and all(pool.active() == 0 for pool in pools)


def request(
    name: str = "r",
    *outputs: str,
    entry: str = "ear",
    session: str = "",
    fence: int = 0,
    epoch: int = 0,
    mind: Generation = GENERATION,
) -> Request:
    return Request(
        request_id=name,
        entry=entry,
        outputs=outputs or ("text", "audio"),
        parameters={**SPEECH, "mind": mind},
        session_id=session,
        fence=fence,
        epoch=epoch,
    )


async def feed(stream: RequestStream, *texts: str) -> None:
    for text in texts:
        await stream.push(Payload(text=text))
    await stream.push(EMPTY, final=True)


async def collect(stream: RequestStream) -> list[Delivery]:
    return [delivery async for delivery in stream]


def texts(deliveries: list[Delivery], output: str) -> list[str]:
    return [delivery.payload.text for delivery in deliveries if delivery.output == output]


async def silent(stage: FakeStage) -> None:
    """Takes nothing and says nothing."""
    await asyncio.Event().wait()
