"""Random graphs, chunkings, aborts, failures and lost workers: every request ends once, rightly, and leaves nothing."""

import asyncio
import tempfile
from collections import defaultdict
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from engines.connectors.process import Connectors
from engines.messages.framing import FrameError
from engines.messages.to_gateway import ErrorKind
from engines.orchestrator import Orchestrator
from engines.payloads import Payload
from engines.pipeline import Pipeline
from engines.requests import Request, RequestFailed
from engines.worker_link import WorkerLink
from fakes.pipelines import tree
from fakes.worker import EMPTY, FakeStage, FakeWorker, Script, inline

WORKERS = 2
LIMIT_S = 10


@dataclass(frozen=True)
class Plan:
    """`fans[i]`: how many chunks stage i makes of each input. Stages go round the workers. A request may stop reading after
    `stops_after` deliveries; `crash` cuts worker 0 once the first request has seen that many; `failing` is a stage that
    fails at its second input."""

    parents: list[int]
    fans: list[int]
    outputs: list[list[int]]
    inputs: int
    stops_after: list[int | None]
    crash: int | None
    failing: int | None

    @property
    def pipeline(self) -> Pipeline:
        return tree(self.parents)


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    parents = [draw(st.integers(0, child)) for child in range(draw(st.integers(0, 4)))]
    stages = len(parents) + 1
    requests = draw(st.integers(1, 4))
    return Plan(
        parents=parents,
        fans=draw(st.lists(st.integers(0, 3), min_size=stages, max_size=stages)),
        outputs=[draw(st.lists(st.integers(0, stages - 1), min_size=1, unique=True)) for _ in range(requests)],
        inputs=draw(st.integers(0, 40)),
        stops_after=[draw(st.none() | st.integers(0, 20)) for _ in range(requests)],
        crash=draw(st.none() | st.integers(0, 30)),
        failing=draw(st.none() | st.integers(0, stages - 1)),
    )


def script(fan: int, *, fails: bool) -> Script:
    async def run(stage: FakeStage) -> None:
        taken = 0
        while True:
            push = await stage.take()
            taken += 1
            if fails and taken == 2:
                stage.fail(ErrorKind.ENGINE, "told to")
                return
            if inline(push).text:
                for part in range(fan):
                    await stage.emit(Payload(text=f"{inline(push).text}{part}"))
            if push.final:
                await stage.emit(final=True)
                return

    return run


def expected(plan: Plan, stage: int) -> list[str]:
    """What the stage says without any faults."""
    texts = [f"{number}:" for number in range(plan.inputs)] if stage == 0 else expected(plan, plan.parents[stage - 1])[:-1]
    return [f"{text}{part}" for text in texts for part in range(plan.fans[stage])] + [""]


class Churn:
    def __init__(self, plan: Plan, folder: Path) -> None:
        self.plan = plan
        names = [stage.name for stage in plan.pipeline.stages]
        self.workers = [FakeWorker(folder / f"w{w}", names[w::WORKERS], name=f"w{w}") for w in range(WORKERS)]
        for number, name in enumerate(names):
            self.workers[number % WORKERS].scripts[name] = script(plan.fans[number], fails=number == plan.failing)
        self.orchestrator = Orchestrator(plan.pipeline, names, Connectors(0))

    async def run(self) -> None:
        async with AsyncExitStack() as stack:
            serving: list[asyncio.Task[None]] = []
            for worker in self.workers:
                await stack.enter_async_context(worker)
                link = await WorkerLink.connect(worker.socket, "test")
                serving.append(asyncio.create_task(self.orchestrator.serve(link)))
            await asyncio.sleep(0)
            async with asyncio.timeout(LIMIT_S):
                outcomes = await asyncio.gather(*(self.client(number) for number in range(len(self.plan.outputs))))
            assert self.orchestrator.running() == 0
            assert all(pool.active() == 0 for pool in self.orchestrator.pools.values())
            assert sum(self.orchestrator.counters.ended.values()) == len(outcomes)
        for ended in await asyncio.gather(*serving, return_exceptions=True):
            assert ended is None or isinstance(ended, FrameError)

    async def client(self, number: int) -> None:
        outputs = self.plan.outputs[number]
        request = Request(request_id=f"r{number}", entry="s0", outputs=tuple(f"o{o}" for o in outputs), parameters={})
        received: dict[int, list[str]] = defaultdict(list)
        failure: RequestFailed | None = None
        async with await self.orchestrator.submit(request) as stream, asyncio.TaskGroup() as group:

            async def feed() -> None:
                for part in range(self.plan.inputs):
                    await stream.push(Payload(text=f"{part}:"))
                await stream.push(EMPTY, final=True)

            group.create_task(feed())
            try:
                async for delivery in stream:
                    received[int(delivery.output[1:])].append(delivery.payload.text)
                    seen = sum(map(len, received.values()))
                    if number == 0 and seen == self.plan.crash:
                        await self.workers[0].crash()
                    if seen == self.plan.stops_after[number]:
                        break
            except RequestFailed as failed:
                failure = failed
            await stream.abort()
        self.check(number, received, failure)

    def check(self, number: int, received: dict[int, list[str]], failure: RequestFailed | None) -> None:
        stopped = self.plan.stops_after[number] is not None
        active = {int(name[1:]) for name in self.plan.pipeline.active_stages("s0", [f"o{o}" for o in self.plan.outputs[number]])}
        for output in self.plan.outputs[number]:
            wanted = expected(self.plan, output)
            got = received[output]
            assert got == wanted[: len(got)]
            assert failure or stopped or got == wanted
        if failure is not None and failure.kind is ErrorKind.ENGINE:
            assert self.plan.failing in active
        elif failure is not None:
            assert failure.kind is ErrorKind.REPLICA_LOST
            assert self.plan.crash is not None


@settings(max_examples=60, deadline=None)
@given(plans())
def test_every_request_ends_once_and_leaves_nothing(plan: Plan) -> None:
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(Churn(plan, Path(folder)).run())
