"""Any graph and chunking, any order of feeding, reading, aborting, crashing, hanging and losing: every request ends once and
rightly, in order, and leaves nothing anywhere."""

import asyncio
import contextlib
import itertools
import tempfile
from collections import defaultdict
from collections.abc import Coroutine
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from engines.connectors.process import Connectors
from engines.graph.orchestrator import Orchestrator
from engines.graph.worker_link import WorkerLink
from engines.messages.to_gateway import ErrorKind
from engines.payloads import Array, Payload
from engines.requests import Request, RequestFailed
from engines.site import Site, this_host
from fakes.pipelines import graph
from fakes.worker import EMPTY, FakeStage, FakeWorker, Script

LIMIT_S = 10
ARENA_BYTES = 256 << 10
"""Room for a dozen large chunks: it runs full, and then they travel inline."""
LARGE = Array.of(np.zeros(10 << 10, np.uint8))
STEPS = [*["feed", "read"] * 3, "end input", "abort", "crash", "crash", "hang", "go on", "lose chunk"]
T = TypeVar("T")


def script(fan: int) -> Script:
    """Each input becomes `fan` chunks, whose text tells the way that they came; every third is large."""

    async def run(stage: FakeStage) -> None:
        while not stage.input_has_ended:
            text = stage.read(await stage.take()).text
            for part in range(fan if text else 0):
                arrays = {"large": LARGE} if stage.emitted % 3 == 0 else {}
                await stage.emit(Payload(f"{text}>{stage.submit.stage}.{part}", arrays))
        await stage.emit(final=True)

    return run


def route(text: str) -> str:
    """The stages that a chunk came through, without which of their chunks it was."""
    return ">".join(hop.partition(".")[0] for hop in text.split(">")[1:])


async def turns(count: int) -> None:
    """Let everything that can happen in so many turns of the loop happen."""
    for _ in range(count):
        await asyncio.sleep(0)


@dataclass
class Client:
    """Feeds and reads one request as far as it is allowed to."""

    outputs: list[int]
    inputs: asyncio.Queue[str | None] = field(default_factory=lambda: asyncio.Queue[str | None]())
    may_read: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(0))
    fed: int = 0
    input_ended: bool = False
    aborted: bool = False
    received: dict[int, list[str]] = field(default_factory=lambda: defaultdict[int, list[str]](list))
    failure: RequestFailed | None = None
    task: asyncio.Task[None] | None = None


class Machine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.folder = tempfile.TemporaryDirectory()
        self.workers: list[FakeWorker] = []
        self.serving: set[asyncio.Task[None]] = set()
        self.clients: list[Client] = []
        self.crashes = self.losses = 0

    def run(self, work: Coroutine[object, object, T]) -> T:
        async def bounded() -> T:
            async with asyncio.timeout(LIMIT_S):
                return await work

        return self.runner.run(bounded())

    @initialize(
        parents=st.lists(st.sets(st.integers(0, 3), min_size=1, max_size=2), max_size=4),
        fans=st.lists(st.integers(0, 2), min_size=5, max_size=5),
        replicas=st.sampled_from([1, 2, 2]),
        requests=st.lists(
            st.tuples(st.lists(st.integers(0, 4), min_size=1, max_size=3), st.integers(0, 40)), min_size=1, max_size=4
        ),
    )
    def start(self, parents: list[set[int]], fans: list[int], replicas: int, requests: list[tuple[list[int], int]]) -> None:
        self.pipeline = graph([sorted({parent % (child + 1) for parent in some}) for child, some in enumerate(parents)])
        self.fans = fans
        self.run(self._start(replicas))
        for outputs, inputs in requests:
            client = Client(sorted({output % (len(parents) + 1) for output in outputs}))
            self._feed(client, inputs)
            self.run(self._submit(client))

    async def _start(self, replicas: int) -> None:
        names = [stage.name for stage in self.pipeline.stages]
        self.connectors = Connectors(ARENA_BYTES)
        self.orchestrator = Orchestrator(self.pipeline, names, self.connectors, site=Site(this_host()))
        for number, half in itertools.product(range(replicas), range(2)):
            name = f"w{number}{half}"
            worker = FakeWorker(Path(self.folder.name) / name, names[half::2], name=name, arena_bytes=ARENA_BYTES)
            worker.scripts = {stage: script(self.fans[int(stage[1:])]) for stage in names}
            await worker.__aenter__()
            self.workers.append(worker)
            await self._connect(worker)

    async def _connect(self, worker: FakeWorker) -> None:
        link = await WorkerLink.connect(worker.socket, "test")
        self.serving.add(asyncio.create_task(self.orchestrator.serve(link)))
        await asyncio.sleep(0)

    async def _submit(self, client: Client) -> None:
        name = f"r{len(self.clients)}"
        outputs = tuple(f"o{output}" for output in client.outputs)
        self.clients.append(client)
        client.task = asyncio.create_task(
            self._live(client, Request(request_id=name, entry="s0", outputs=outputs, parameters={}))
        )
        await asyncio.sleep(0)

    async def _live(self, client: Client, request: Request) -> None:
        try:
            async with await self.orchestrator.submit(request) as stream, asyncio.TaskGroup() as group:

                async def feed() -> None:
                    while (text := await client.inputs.get()) is not None:
                        await stream.push(Payload(text))
                    await stream.push(EMPTY, final=True)

                feeding = group.create_task(feed())
                try:
                    while True:
                        await client.may_read.acquire()
                        delivery = await anext(stream)
                        client.received[int(delivery.output[1:])].append(delivery.payload.text)
                except StopAsyncIteration:
                    pass
                except RequestFailed as failed:
                    client.failure = failed
                feeding.cancel()
        except RequestFailed as refused:
            client.failure = refused

    @rule(step=st.sampled_from(STEPS), who=st.integers(0, 3), where=st.integers(0, 3), count=st.integers(1, 30))
    def step(self, step: str, who: int, where: int, count: int) -> None:
        """One rule for all, so that every run has them all."""
        client, worker = self.clients[who % len(self.clients)], self.workers[where % len(self.workers)]
        match step:
            case "feed":
                self._feed(client, 0 if client.input_ended else count)
            case "end input":
                self._end_input(client)
            case "read":
                self._let_read(client, count)
            case "abort":
                self._abort(client)
            case "crash":
                self.crashes += 1
                self.run(self._crash(worker))
            case "hang":
                worker.hang()
            case "go on":
                worker.go_on()
            case _:
                self.losses += 1
                worker.lose_chunk()
        self.run(turns(count * 5))

    def _feed(self, client: Client, count: int) -> None:
        for _ in range(count):
            client.inputs.put_nowait(f"{client.fed}:")
            client.fed += 1

    def _end_input(self, client: Client) -> None:
        if not client.input_ended:
            client.input_ended = True
            client.inputs.put_nowait(None)

    def _let_read(self, client: Client, count: int) -> None:
        for _ in range(count):
            client.may_read.release()

    def _abort(self, client: Client) -> None:
        assert client.task is not None
        client.aborted = True
        client.task.cancel()
        self.run(self._ended(client))

    async def _crash(self, worker: FakeWorker) -> None:
        await worker.crash()
        await turns(20)
        await self._connect(worker)

    def teardown(self) -> None:
        try:
            if self.workers:
                self.run(self._end())
                for client in self.clients:
                    self.check(client)
        finally:
            self.runner.close()
            self.folder.cleanup()

    async def _end(self) -> None:
        for worker in self.workers:
            worker.go_on()
        for client in self.clients:
            self._end_input(client)
            self._let_read(client, 20_000)
        for client in self.clients:
            await self._ended(client)
        assert self.orchestrator.running() == 0
        assert all(pool.active() == 0 for pool in self.orchestrator.pools.values())
        for worker in self.workers:
            await worker.until(lambda worker=worker: not worker.open and not worker.payloads())
            await worker.__aexit__()
        await asyncio.gather(*self.serving, return_exceptions=True)
        self.connectors.close()
        assert not [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]

    async def _ended(self, client: Client) -> None:
        assert client.task is not None
        with contextlib.suppress(asyncio.CancelledError):
            await client.task

    def check(self, client: Client) -> None:
        active = self.pipeline.active_stages("s0", [f"o{output}" for output in client.outputs])
        whole = self.expected(client.fed, active)
        for output in client.outputs:
            got = client.received[output]
            assert got.count("") <= 1
            self.check_order(got, whole[f"s{output}"], complete=not client.aborted and client.failure is None)
        if client.failure is not None:
            assert client.failure.kind is (
                ErrorKind.ENGINE if self.losses and "seq" in str(client.failure) else ErrorKind.REPLICA_LOST
            )
            assert self.crashes or self.losses

    def check_order(self, got: list[str], wanted: list[str], *, complete: bool) -> None:
        """Each route's chunks in its own order; from a join they come as they come."""
        by_route: dict[str, list[str]] = defaultdict(list)
        for text in wanted:
            by_route[route(text)].append(text)
        seen: dict[str, list[str]] = defaultdict(list)
        for text in filter(None, got):
            seen[route(text)].append(text)
        for way, texts in seen.items():
            assert texts == by_route[way][: len(texts)]
        if complete:
            assert got[-1] == ""
            assert sorted(filter(None, got)) == sorted(wanted)

    def expected(self, fed: int, active: tuple[str, ...]) -> dict[str, list[str]]:
        """By stage, in the pipeline's order."""
        made: dict[str, list[str]] = {}
        for stage in active:
            sources = self.pipeline.upstreams(stage, active)
            inputs = [text for source in sources for text in made[source]] or [f"{number}:" for number in range(fed)]
            inputs = inputs if sources == () or any(made[source] for source in sources) else []
            made[stage] = [f"{text}>{stage}.{part}" for text in inputs for part in range(self.fans[int(stage[1:])])]
        return made


TestMachine = Machine.TestCase
TestMachine.settings = settings(max_examples=150, stateful_step_count=12, deadline=None)
