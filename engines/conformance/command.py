"""From a stage's name in a deployment to the results of all checks."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from engines import deployment
from engines.configuration import ConfigurationError, read
from engines.conformance import ConformanceFault, NotApplicable
from engines.conformance.generation_bench import GenerationBench
from engines.conformance.samples import GenerationSamples, Samples, TextSamples, named
from engines.conformance.suite import GENERATION_CHECKS, TEXT_CHECKS, WORKER_CHECKS, Result, run, run_async
from engines.conformance.text_bench import TextBench
from engines.conformance.worker_bench import WorkerBench
from engines.deployment import FAMILIES, GraphSettings, StageSettings
from engines.models import GenerationModel
from engines.pipeline import ExecutionType
from engines.weights import WeightsError
from engines.worker.loading import load_generation_model, load_text_model
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


def test(subject: Subject) -> Iterator[Result]:
    """First the model in this process, then the same stage in a worker's."""
    if isinstance(subject.samples, GenerationSamples):
        yield from run(GENERATION_CHECKS, GenerationBench(lambda: _loaded(subject), subject.samples))
    else:
        yield from asyncio.run(_test_text(subject, subject.samples))
    yield from asyncio.run(_test_worker(subject))


def _loaded(subject: Subject) -> GenerationModel[object]:
    return load_generation_model(subject.spec)


async def _test_text(subject: Subject, samples: TextSamples) -> list[Result]:
    model = await asyncio.to_thread(load_text_model, subject.spec)
    try:
        await model.warm_up()
        return await run_async(TEXT_CHECKS, TextBench(model, samples))
    finally:
        model.shutdown()


async def _test_worker(subject: Subject) -> list[Result]:
    try:
        async with WorkerBench.started(subject.settings, subject.stage, subject.samples) as bench:
            return await run_async(WORKER_CHECKS, bench)
    except NotApplicable as reason:
        return [Result("a_worker_serves_it", "", "", str(reason), 0.0)]
    except ConformanceFault as fault:
        return [Result("a_worker_serves_it", "", str(fault), "", 0.0)]


def _samples(settings: GraphSettings, stage: str, chosen: str | None) -> Samples:
    execution, own = settings.record().stage(stage).execution, settings.stages[stage]
    path = chosen or _familys_samples(execution, own)
    try:
        samples = named(path)(own.options)
    except ValueError as wrong:
        raise CannotTest(str(wrong)) from wrong
    expected = TextSamples if execution is ExecutionType.AR else GenerationSamples
    if not isinstance(samples, expected):
        raise CannotTest(f"samples {path!r}: expected {expected.__name__} for an {execution} stage, got {type(samples).__name__}")
    return samples


def _familys_samples(execution: ExecutionType, stage: StageSettings) -> str:
    if stage.model not in FAMILIES[execution]:
        raise CannotTest(f"{stage.model} is of no family in engines/models/registry.py: name its samples with --samples")
    return FAMILIES[execution][stage.model].samples
