"""The models that need no weights, which read and write pictures, keep every promise of the contract."""

from pathlib import Path
from typing import Any

import pytest

from engines.conformance.generation_bench import GenerationBench
from engines.conformance.samples import GenerationSamples, samples_of
from engines.conformance.suite import GENERATION_CHECKS, Check, run
from engines.models import GenerationModel
from engines.models.registry import GENERATION
from engines.worker.loading import load_generation_model
from engines.worker.spec import StageSpec

WITHOUT_WEIGHTS = tuple(name for name, family in GENERATION.items() if not family.files)


@pytest.fixture(scope="module", params=WITHOUT_WEIGHTS)
def bench(request: pytest.FixtureRequest) -> GenerationBench:
    family: str = request.param
    samples = samples_of(GENERATION[family].samples, {})
    assert isinstance(samples, GenerationSamples)

    def load() -> GenerationModel[Any]:
        return load_generation_model(StageSpec(family, family, str(Path())))

    return GenerationBench(load, samples)


@pytest.mark.parametrize("check", GENERATION_CHECKS, ids=lambda check: check.__name__)
def test_it_conforms(bench: GenerationBench, check: Check[GenerationBench]) -> None:
    assert [result.fault for result in run([check], bench)] == [""]
