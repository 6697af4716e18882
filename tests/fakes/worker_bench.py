"""A worker in the test's own process, on a real Unix socket, with scripted models."""

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

from engines.bridges.transcript_prompt import TranscriptPrompt
from engines.connectors.process import Connectors
from engines.diffusion.scheduling import Scheduler
from engines.models import GenerationModel
from engines.models.diffusion import DiffusionModel
from engines.models.text import ModelDied
from engines.parameters import Activity, Denoising, Generation
from engines.pipeline import Edge, ExecutionType, Output, Pipeline, Stage
from engines.worker.ar import ArEngine
from engines.worker.diffusion import DiffusionEngine
from engines.worker.engine import Engine
from engines.worker.generation import GenerationEngine
from engines.worker.listening import listener
from engines.worker.server import Worker
from engines.worker.spec import DEFAULT_HANG_LIMIT_S, BatchSpec, StageSpec, WorkerSpec
from fakes.echoing import EchoingModel
from fakes.first_come import FirstCome
from fakes.gateway import FakeGateway
from fakes.held_steps import HeldSteps
from fakes.joins import Marked, Pairs
from fakes.models import ScriptedModel, ScriptedTextModel
from fakes.remote_payloads import RemotePayloads

ARENA_BYTES = 1 << 20

PIPELINE = Pipeline(
    name="test",
    stages=(
        Stage("echo", ExecutionType.GENERATION, emits="echo", parameters=Activity),
        Stage("joined", ExecutionType.GENERATION, emits="echo", parameters=Activity, intake=TranscriptPrompt),
        Stage("writer", ExecutionType.AR, emits="text", parameters=Generation),
        Stage("blobs", ExecutionType.GENERATION, emits="blobs", parameters=Activity),
        Stage("mixed", ExecutionType.GENERATION, emits="echo", parameters=Activity),
        Stage("paired", ExecutionType.GENERATION, emits="echo", parameters=Activity, join=Pairs),
        Stage("steps", ExecutionType.DIFFUSION, emits="sums", parameters=Denoising),
    ),
    edges=(
        Edge("echo", "writer", TranscriptPrompt),
        Edge("echo", "mixed", Marked),
        Edge("joined", "mixed", Marked),
        Edge("echo", "paired", Marked),
        Edge("joined", "paired", Marked),
    ),
    outputs=(Output("text", "writer"),),
)


class Bench:
    """The worker under test and its models. `start` reads `batch`, `slots`, `hang_limit_s` and `is_supervised`."""

    def __init__(self, folder: Path) -> None:
        self.socket = folder / "sockets" / "worker"
        self.model = ScriptedModel(asyncio.get_running_loop())
        self.text_model = ScriptedTextModel()
        self.stepper = HeldSteps(asyncio.get_running_loop())
        self.steppers: dict[str, DiffusionModel[Any, Any]] = {"steps": self.stepper}
        self.first_come = FirstCome()
        self.scheduler: Scheduler = self.first_come
        self.models: dict[str, GenerationModel[Any]] = {"echo": self.model, "blobs": EchoingModel()}
        """By stage; those that are not named are ScriptedModels."""
        self.batch = BatchSpec()
        self.slots = 8
        self.hang_limit_s = DEFAULT_HANG_LIMIT_S
        self.ahead_s = 0.0
        """Of the real clock, as the DIFFUSION engine reads it."""
        self.is_supervised = True
        self.remote = RemotePayloads()
        self.connectors = Connectors(ARENA_BYTES, {self.remote.name: self.remote})
        self.broken = ""
        """The stage whose model cannot be loaded."""
        self.loading_may_end = asyncio.Event()
        self.loading_may_end.set()
        self.running: asyncio.Task[None] | None = None
        self._worker: Worker | None = None
        self._gateways: list[FakeGateway] = []

    async def gateway(self, server: str = "gateway") -> FakeGateway:
        """Another gateway, connected and welcomed; every stage has left LOADING."""
        gateway = await FakeGateway.greet(self.start(), server)
        self._gateways.append(gateway)
        return gateway

    async def stranger(self) -> FakeGateway:
        """Connected, and silent so far."""
        gateway = await FakeGateway.connect(self.start())
        self._gateways.append(gateway)
        return gateway

    def start(self) -> Path:
        if self.running is not None:
            return self.socket
        stages = tuple(StageSpec(stage.name, "scripted", "", self.slots, self.batch) for stage in PIPELINE.stages)
        spec = WorkerSpec("bench", "test", str(self.socket), stages, is_supervised=self.is_supervised)
        self._worker = Worker(spec, PIPELINE, self.connectors, self._load)
        self.running = asyncio.create_task(self._worker.run(listener(spec)))
        return self.socket

    async def stop(self) -> None:
        self.model.release()
        self.stepper.release()
        for gateway in self._gateways:
            await gateway.close()
        if self.running is not None:
            self.running.cancel()
            with suppress(asyncio.CancelledError):
                await self.running
        if self._worker is not None:
            self._worker.shutdown()
        self.connectors.close()

    async def model_died(self) -> bool:
        """Waits until the worker has ended by itself; whether that was why."""
        assert self.running is not None
        running, self.running = self.running, None
        died = False
        try:
            await running
        except* ModelDied:
            died = True
        return died

    def clock(self) -> float:
        return time.monotonic() + self.ahead_s

    async def _load(self, stage: Stage, spec: StageSpec) -> Engine:
        await self.loading_may_end.wait()
        if stage.name == self.broken:
            raise FileNotFoundError("no weights")
        if stage.execution is ExecutionType.AR:
            return ArEngine(spec.stage, self.text_model, spec.slots, hang_limit_s=self.hang_limit_s)
        thread = ThreadPoolExecutor(1, thread_name_prefix=spec.stage)
        if stage.execution is ExecutionType.DIFFUSION:
            return DiffusionEngine(
                spec.stage,
                self.steppers[spec.stage],
                self.scheduler,
                spec.slots,
                thread,
                clock=self.clock,
                hang_limit_s=self.hang_limit_s,
            )
        model = self.models.get(spec.stage) or ScriptedModel()
        return GenerationEngine(spec.stage, model, spec.batch, spec.slots, thread, hang_limit_s=self.hang_limit_s)
