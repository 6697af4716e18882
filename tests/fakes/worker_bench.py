"""A worker in the test's own process, on a real Unix socket, with scripted models."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

from engines.bridges.transcript_prompt import TranscriptPrompt
from engines.models.text import ModelDied
from engines.parameters import Activity, Generation
from engines.pipeline import Edge, ExecutionType, Output, Pipeline, Stage
from engines.worker.ar import HANG_LIMIT_S, ArEngine
from engines.worker.engine import Engine
from engines.worker.generation import GenerationEngine
from engines.worker.listening import listener
from engines.worker.server import Worker
from engines.worker.spec import BatchSpec, StageSpec, WorkerSpec
from fakes.gateway import FakeGateway
from fakes.models import ScriptedModel, ScriptedTextModel

PIPELINE = Pipeline(
    name="test",
    stages=(
        Stage("echo", ExecutionType.GENERATION, emits="echo", parameters=Activity),
        Stage("joined", ExecutionType.GENERATION, emits="echo", parameters=Activity, intake=TranscriptPrompt),
        Stage("writer", ExecutionType.AR, emits="text", parameters=Generation),
    ),
    edges=(Edge("echo", "writer", TranscriptPrompt),),
    outputs=(Output("text", "writer"),),
)


class Bench:
    """The worker under test and its models. `batch`, `slots` and `hang_limit_s` may be changed before `start`."""

    def __init__(self, folder: Path) -> None:
        self.socket = folder / "sockets" / "worker"
        self.model = ScriptedModel(asyncio.get_running_loop())
        self.text_model = ScriptedTextModel()
        self.batch = BatchSpec()
        self.slots = 8
        self.hang_limit_s = HANG_LIMIT_S
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
        stages = tuple(StageSpec(name, "scripted", "", self.slots, self.batch) for name in ("echo", "joined", "writer"))
        spec = WorkerSpec("bench", "test", str(self.socket), stages)
        self._worker = Worker(spec, PIPELINE, self._load)
        self.running = asyncio.create_task(self._worker.run(listener(spec)))
        return self.socket

    async def stop(self) -> None:
        self.model.release()
        for gateway in self._gateways:
            await gateway.close()
        if self.running is not None:
            self.running.cancel()
            with suppress(asyncio.CancelledError):
                await self.running
        if self._worker is not None:
            self._worker.shutdown()

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

    async def _load(self, stage: Stage, spec: StageSpec) -> Engine:
        await self.loading_may_end.wait()
        if stage.name == self.broken:
            raise FileNotFoundError("no weights")
        if stage.execution is ExecutionType.AR:
            return ArEngine(spec.stage, self.text_model, spec.slots, hang_limit_s=self.hang_limit_s)
        model = self.model if spec.stage == "echo" else ScriptedModel()
        return GenerationEngine(spec.stage, model, spec.batch, spec.slots, ThreadPoolExecutor(1, thread_name_prefix=spec.stage))
