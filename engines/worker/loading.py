"""From a stage's spec to an engine that is warm."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path
from typing import Protocol

import msgspec

from engines.diffusion.scheduling import Scheduler
from engines.diffusion.scheduling.steps import Steps
from engines.diffusion.scheduling.waves import Waves
from engines.models import GenerationModel, GenerationModelLoader, registry
from engines.models.diffusion import DiffusionModel, DiffusionModelLoader, Job
from engines.models.text import TextModel, TextModelLoader
from engines.pipeline import ExecutionType, Stage
from engines.worker.ar import ArEngine
from engines.worker.diffusion import DiffusionEngine
from engines.worker.engine import Engine
from engines.worker.generation import GenerationEngine
from engines.worker.spec import StageSpec


class EngineFactory(Protocol):
    async def __call__(self, stage: Stage, spec: StageSpec) -> Engine:
        """Raises whatever the model's loading raises."""
        ...


async def load_engine(stage: Stage, spec: StageSpec) -> Engine:
    """A GENERATION or DIFFUSION model is loaded, warmed and run in one thread of its own; importing and loading never hold up the
    loop."""
    thread = ThreadPoolExecutor(1, thread_name_prefix=spec.stage)
    loop = asyncio.get_running_loop()
    if stage.execution is ExecutionType.AR:
        text_model = await loop.run_in_executor(thread, load_text_model, spec)
        thread.shutdown(wait=False)
        await text_model.warm_up()
        return ArEngine(spec.stage, text_model, spec.slots, hang_limit_s=spec.hang_limit_s)
    if stage.execution is ExecutionType.DIFFUSION:
        stepper = await loop.run_in_executor(thread, load_diffusion_model, spec)
        return DiffusionEngine(spec.stage, stepper, scheduler(spec), spec.slots, thread, hang_limit_s=spec.hang_limit_s)
    model = await loop.run_in_executor(thread, load_generation_model, spec)
    return GenerationEngine(spec.stage, model, spec.batch, spec.slots, thread, hang_limit_s=spec.hang_limit_s)


def load_text_model(spec: StageSpec) -> TextModel:
    """Not warm yet. Raises whatever loading raises, as the next one does."""
    loader: TextModelLoader = _model_class(registry.AR, spec.model)
    return loader.load(Path(spec.directory), dict(spec.options), spec.slots)


def load_generation_model(spec: StageSpec) -> GenerationModel[object]:
    loader: GenerationModelLoader = _model_class(registry.GENERATION, spec.model)
    model = loader.load(Path(spec.directory), dict(spec.options))
    model.warm_up()
    return model


def load_diffusion_model(spec: StageSpec) -> DiffusionModel[object, Job]:
    loader: DiffusionModelLoader = _model_class(registry.DIFFUSION, spec.model)
    model = loader.load(Path(spec.directory), dict(spec.options))
    model.warm_up()
    return model


def scheduler(spec: StageSpec) -> Scheduler:
    schedule = spec.schedule
    reserved = msgspec.structs.asdict(schedule.shares)
    if schedule.policy == "steps":
        return Steps(spec.batch.max, reserved)
    return Waves(spec.batch.max, schedule.window_ms / 1000, schedule.stable_ms / 1000, reserved)


def _model_class(known: dict[str, registry.Family], name: str):
    """`name` is a key of the registry, or `module:Class` of a model that lives elsewhere."""
    path = known[name].model if name in known else name
    module, separator, attribute = path.partition(":")
    if not separator:
        raise ValueError(f"model: expected one of {', '.join(known)}, or `module:Class`, got {name!r}")
    return getattr(import_module(module), attribute)
