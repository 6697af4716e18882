"""The same load on the wall clock: the engine in a worker, a small network for its steps, and clients on a socket.

Times are scaled, so that a step of eight rows, with all that the engine does between two, takes eight of their milliseconds on
this machine: `scale`.
"""

import asyncio
import gc
import tempfile
import time
from collections import defaultdict
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from bench.command import note
from bench.diffusion_load import KINDS, STEPS_PER_LOAD, Tally, clients, missed
from engines.connectors.contents import Inline
from engines.connectors.process import Connectors
from engines.diffusion.scheduling import Scheduler
from engines.messages import to_gateway, to_worker
from engines.messages.framing import FrameReader, frame
from engines.messages.to_gateway import Emit, Failed
from engines.messages.to_worker import Grant, Hello, Push, ServiceClass, Submit, ToWorker
from engines.models.diffusion import DEADLINE_MS, SHED, STEP, STEPS, DiffusionModel
from engines.parameters import Denoising
from engines.payloads import Payload
from engines.pipeline import Stage
from engines.worker.diffusion import DiffusionEngine
from engines.worker.engine import Engine
from engines.worker.listening import listener
from engines.worker.server import Worker
from engines.worker.spec import StageSpec, WorkerSpec
from fakes.first_come import FirstCome
from fakes.simulated_engine import Work
from fakes.small_network import SmallNetwork
from fakes.step_counter import COUNTERS

STAGE = COUNTERS.stages[0].name
SLOTS = 512
LAST_WORD_S = 2.0
LONG_S = 60.0
COMPARED = ("slack", "step_fifo_shed")
PARTS = (0.4, 0.8, 1.2)
MOST = 1000 / STEPS_PER_LOAD


async def on_the_wall_clock(schedulers: Mapping[str, Callable[[], Scheduler]], rounds: int, duration_s: float) -> dict[str, Any]:
    """What is missed at parts of the load that the engine does at the most. The schedulers take turns: what else the machine does
    concerns both."""
    network = SmallNetwork()
    steps_ms = {rows: await step_ms(network, rows) for rows in (1, 8)}
    scale = steps_ms[8] / 8
    outcomes: dict[str, dict[str, dict[str, Tally]]] = {}
    for part in PARTS:
        sums = {name: {kind.name: Tally() for kind in KINDS} for name in COMPARED}
        for turn in range(rounds):
            works = scaled(clients(part * MOST, duration_s, turn), scale)
            for name in COMPARED:
                for kind, tally in (await served_in_real_time(schedulers[name](), network, works)).items():
                    sums[name][kind].add(tally)
        outcomes[str(part)] = sums
        note(f"wall clock, {part} of the most: " + ", ".join(f"{name} misses {missed(sums[name]):.1%}" for name in COMPARED))
    tallies = [tally for sums in outcomes.values() for of_one in sums.values() for tally in of_one.values()]
    return {
        "step_ms": {rows: round(ms, 1) for rows, ms in steps_ms.items()},
        "missed": {part: _parts(sums) for part, sums in outcomes.items()},
        "control_missed": {part: _parts(sums, "control") for part, sums in outcomes.items()},
        "unanswered": sum(tally.jobs - tally.answered for tally in tallies),
    }


def _parts(sums: Mapping[str, Mapping[str, Tally]], *kinds: str) -> dict[str, float]:
    return {name: round(missed(of_one, *kinds), 3) for name, of_one in sums.items()}


async def step_ms(network: SmallNetwork, jobs: int, steps: int = 60, turns: int = 5) -> float:
    """Of so many that share all their steps, in the engine."""
    taken: list[float] = []
    for _ in range(turns):
        works = [Work(0.0, "batch", steps, LONG_S)] * jobs
        began = time.monotonic()
        await served_in_real_time(FirstCome(jobs), network, works)
        taken.append(time.monotonic() - began)
    return median(taken) / steps * 1000


def scaled(works: Sequence[Work], scale: float) -> list[Work]:
    return [
        Work(work.at * scale, work.service_class, work.calls, None if work.deadline_s is None else work.deadline_s * scale)
        for work in works
    ]


async def served_in_real_time(scheduler: Scheduler, network: DiffusionModel[Any, Any], works: Sequence[Work]) -> dict[str, Tally]:
    """By the names of KINDS. A job is in time by when its answer came, counted from when it was sent."""
    async with working(scheduler, network) as path:
        house = Clients(*await asyncio.open_unix_connection(str(path)))
        listening = asyncio.create_task(house.listen())
        gc.collect()
        gc.freeze()
        began = time.monotonic()
        for work in sorted(works, key=lambda work: work.at):
            if (ahead_s := began + work.at - time.monotonic()) > 0:
                await asyncio.sleep(ahead_s)
            house.ask(work)
        with suppress(TimeoutError):
            await asyncio.wait_for(house.all_answered(), LAST_WORD_S)
        listening.cancel()
        await asyncio.wait([listening])
        await house.leave()
    return house.tallies


@asynccontextmanager
async def working(scheduler: Scheduler, network: DiffusionModel[Any, Any]) -> AsyncGenerator[Path]:
    """A worker in this process, in which any scheduler will do."""

    async def load(stage: Stage, spec: StageSpec) -> Engine:
        return DiffusionEngine(spec.stage, network, scheduler, spec.slots, ThreadPoolExecutor(1, STAGE))

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "sockets" / "worker"
        spec = WorkerSpec("bench", COUNTERS.name, str(path), (StageSpec(STAGE, "small", "", SLOTS),))
        connectors = Connectors(1 << 20)
        worker = Worker(spec, COUNTERS, connectors, load)
        running = asyncio.create_task(worker.run(listener(spec)))
        await worker.loaded()
        yield path
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running
        worker.shutdown()
        connectors.close()


@dataclass
class Clients:
    """All of them on one connection. A job goes to a request of its class that has none under way, or to a new one."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    tallies: dict[str, Tally] = field(default_factory=lambda: {kind.name: Tally() for kind in KINDS})
    idle: defaultdict[str, list[str]] = field(default_factory=lambda: defaultdict[str, list[str]](list))
    asked: dict[str, tuple[Work, float]] = field(default_factory=dict[str, tuple[Work, float]])
    """By request: its job, and when it was sent."""
    opened: int = 0
    answered: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self._names = {kind.service_class: kind.name for kind in KINDS}
        self._send(Hello("bench"))

    def ask(self, work: Work) -> None:
        assert work.deadline_s is not None
        idle = self.idle[work.service_class]
        request = idle.pop() if idle else self._open(work.service_class)
        self.asked[request] = work, time.monotonic()
        self.tallies[self._names[work.service_class]].jobs += 1
        payload = Payload(attributes={"steps": work.calls, DEADLINE_MS: work.deadline_s * 1000})
        self._send(Push(request, STAGE, "", Inline(payload), final=False))

    async def listen(self) -> None:
        frames = FrameReader(self.reader, to_gateway.decoder)
        while (message := await frames.next()) is not None:
            match message:
                case Emit(chunk):
                    assert isinstance(chunk.content, Inline)
                    self._send(Grant(chunk.request_id, STAGE, 1))
                    self._hear(chunk.request_id, chunk.content.payload)
                case Failed():
                    raise ConnectionError(message.message)
                case _:
                    pass

    async def all_answered(self) -> None:
        while self.asked:
            self.answered.clear()
            await self.answered.wait()

    async def leave(self) -> None:
        self.writer.close()
        await self.writer.wait_closed()

    def _open(self, service_class: str) -> str:
        request = f"{service_class} {self.opened}"
        self.opened += 1
        limits = (64, 1 << 20, 1000.0)
        self._send(Submit(request, COUNTERS.name, STAGE, (), 1, 1, "", ServiceClass(service_class), Denoising(), *limits))
        return request

    def _hear(self, request: str, payload: Payload) -> None:
        said = payload.attributes
        if SHED not in said and said.get(STEP) != said.get(STEPS):
            return
        work, sent_at = self.asked.pop(request)
        tally = self.tallies[self._names[work.service_class]]
        tally.answered += said.get(SHED) != ""
        tally.in_time += SHED not in said and work.deadline_s is not None and time.monotonic() <= sent_at + work.deadline_s
        self.idle[work.service_class].append(request)
        self.answered.set()

    def _send(self, message: ToWorker) -> None:
        self.writer.write(frame(to_worker.encoder.encode(message)))
