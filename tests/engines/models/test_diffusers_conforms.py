"""A folder in diffusers layout keeps every promise of the contract."""

from typing import Any

import msgspec
import pytest

from engines.conformance.diffusion_bench import DiffusionBench
from engines.conformance.samples import GenerationSamples, samples_of
from engines.conformance.suite import DIFFUSION_CHECKS, Check, run
from engines.models.diffusion import DiffusionModel
from engines.models.registry import DIFFUSION
from engines.parameters import Picture
from engines.worker.loading import load_diffusion_model
from engines.worker.spec import StageSpec
from fakes import tiny_pipelines

SMALL = Picture(width=32, height=32, steps=3)


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> DiffusionBench:
    folder = tiny_pipelines.save(tiny_pipelines.stable_diffusion, tmp_path_factory.mktemp("pipeline"))
    samples = samples_of(DIFFUSION["diffusers"].samples, {})
    assert isinstance(samples, GenerationSamples)

    def load() -> DiffusionModel[Any, Any]:
        return load_diffusion_model(StageSpec("painter", "diffusers", str(folder)))

    small = msgspec.structs.replace(samples, parameters=SMALL, reseeded=msgspec.structs.replace(SMALL, seed=1))
    return DiffusionBench(load, small)


@pytest.mark.parametrize("check", DIFFUSION_CHECKS, ids=lambda check: check.__name__)
def test_it_conforms(bench: DiffusionBench, check: Check[DiffusionBench]) -> None:
    assert [result.fault for result in run([check], bench)] == [""]
