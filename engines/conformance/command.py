"""From a stage's name in a deployment to the results of all checks."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from engines import deployment
from engines.configuration import ConfigurationError, read
from engines.conformance import NotApplicable
from engines.conformance.diffusion_bench import DiffusionBench
from engines.conformance.generation_bench import GenerationBench
from engines.conformance.samples import GenerationSamples, Samples, TextSamples, samples_of
from engines.conformance.suite import DIFFUSION_CHECKS, GENERATION_CHECKS, TEXT_CHECKS, WORKER_CHECKS, Result, run, run_async
from engines.conformance.text_bench import TextBench
from engines.conformance.worker_bench import WorkerBench
from engines.deployment import FAMILIES, GraphSettings, StageSettings
from engines.pipeline import ExecutionType
from engines.weights import WeightsError
from engines.worker.foreign import attempt, attempt_async, describe
from engines.worker.loading import load_diffusion_model, load_generation_model, load_text_model
from engines.worker.spec import StageSpec

SECTIONS_OF_OTHERS = ("session", "server")
"""They may stand in the same file."""


class CannotTest(Exception):
    """Why there is nothing to put through its contract, in a sentence."""


class Subject(NamedTuple):
    settings: GraphSettings
    stage: str
    samples: Samples

    @classmethod
    def find(cls, file: Path, stage: str, samples: str | None) -> "Subject":
        """Raises CannotTest."""
        try:
            sections = read(file, (*deployment.SECTIONS, *SECTIONS_OF_OTHERS))
            settings = deployment.with_weights(deployment.graph_settings(file, sections))
        except (ConfigurationError, WeightsError) as wrong:
            raise CannotTest(str(wrong)) from wrong
        if stage not in settings.stages:
            raise CannotTest(f"{file}: expected one of its stages {', '.join(settings.stages)}, got {stage!r}")
        return cls(settings, stage, _samples(settings, stage, samples))

    @property
    def spec(self) -> StageSpec:
        chosen = self.settings.stages[self.stage]
        return StageSpec(self.stage, chosen.model, chosen.directory, chosen.slots, chosen.batch, chosen.options)


def results(subject: Subject) -> Iterator[Result]:
    """First of the model in this process, then of the same stage in a worker's."""
    if isinstance(subject.samples, TextSamples):
        yield from asyncio.run(_text_results(subject.spec, subject.samples))
    else:
        begun = attempt(_model_results, subject, subject.samples)
        if isinstance(begun, Exception):
            yield _not_begun("repeats_itself", f"it cannot be loaded: {describe(begun)[1]}")
            return
        yield from begun
    yield from asyncio.run(_worker_results(subject))


def _model_results(subject: Subject, samples: GenerationSamples) -> Iterator[Result]:
    """Loads it, and then tries one check after the other. Raises whatever loading raises."""
    if subject.settings.record().stage(subject.stage).execution is ExecutionType.DIFFUSION:
        return run(DIFFUSION_CHECKS, DiffusionBench(lambda: load_diffusion_model(subject.spec), samples))
    return run(GENERATION_CHECKS, GenerationBench(lambda: load_generation_model(subject.spec), samples))


async def _text_results(spec: StageSpec, samples: TextSamples) -> list[Result]:
    model = await attempt_async(asyncio.to_thread(load_text_model, spec))
    if isinstance(model, Exception):
        return [_not_begun("batching_equals_solo", f"it cannot be loaded: {describe(model)[1]}")]
    try:
        await model.warm_up()
        return await run_async(TEXT_CHECKS, TextBench(model, samples))
    finally:
        model.shutdown()


async def _worker_results(subject: Subject) -> list[Result]:
    try:
        async with WorkerBench.started(subject.settings, subject.stage, subject.samples) as bench:
            if bench.hindrance:
                return [_not_begun("a_worker_serves_it", bench.hindrance)]
            return await run_async(WORKER_CHECKS, bench)
    except NotApplicable as reason:
        return [_not_begun("a_worker_serves_it", skipped=str(reason))]


def _not_begun(check: str, fault: str = "", skipped: str = "") -> Result:
    return Result(check, "", fault, skipped, 0.0)


def _samples(settings: GraphSettings, stage: str, chosen: str | None) -> Samples:
    execution, own = settings.record().stage(stage).execution, settings.stages[stage]
    path = chosen or _familys_samples(execution, own)
    try:
        samples = samples_of(path, own.options)
    except ValueError as wrong:
        raise CannotTest(str(wrong)) from wrong
    expected = TextSamples if execution is ExecutionType.AR else GenerationSamples
    if not isinstance(samples, expected):
        raise CannotTest(f"samples {path!r}: expected {expected.__name__} for the stage {stage!r}, got {type(samples).__name__}")
    return samples


def _familys_samples(execution: ExecutionType, stage: StageSettings) -> str:
    if stage.model not in FAMILIES[execution]:
        raise CannotTest(f"{stage.model} is of no family in engines/models/registry.py: name its samples with --samples")
    return FAMILIES[execution][stage.model].samples
