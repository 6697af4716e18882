"""Every model that we serve, with its real weights, keeps every promise of the contract."""

from collections.abc import Iterable
from typing import Any

import pytest

from engines.conformance.generation_bench import GenerationBench
from engines.conformance.samples import GenerationSamples, samples_of
from engines.conformance.suite import GENERATION_CHECKS, Check, Result, run
from engines.models import GenerationModel
from engines.models.registry import GENERATION
from engines.weights import directory
from engines.worker.loading import load_generation_model
from engines.worker.spec import StageSpec

pytestmark = pytest.mark.real_models

WEIGHTS = {
    "silero_vad": "silero-vad",
    "smart_turn": "smart-turn",
    "whisper": "whisper-tiny-en",
    "piper_talker": "piper-joe",
    "piper_decoder": "piper-joe",
}


@pytest.fixture(scope="module")
def benches() -> dict[str, GenerationBench]:
    return {}


def bench_of(family: str, weights: str) -> GenerationBench:
    spec = StageSpec(family, family, str(directory(weights)))
    samples = samples_of(GENERATION[family].samples, {})
    assert isinstance(samples, GenerationSamples)

    def load() -> GenerationModel[Any]:
        return load_generation_model(spec)

    return GenerationBench(load, samples)


def fault_of(results: Iterable[Result]) -> str:
    return "; ".join(f"{result.check}: {result.fault}" for result in results if result.fault)


@pytest.mark.parametrize("check", GENERATION_CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("family", WEIGHTS)
def test_it_conforms(benches: dict[str, GenerationBench], family: str, check: Check[GenerationBench]):
    if family not in benches:
        benches[family] = bench_of(family, WEIGHTS[family])
    assert fault_of(run([check], benches[family])) == ""


@pytest.mark.full
@pytest.mark.timeout(900)
def test_the_slow_narrator_conforms():
    assert fault_of(run(GENERATION_CHECKS, bench_of("kokoro", "kokoro"))) == ""


def test_every_family_with_weights_is_tried():
    assert {*WEIGHTS, "kokoro"} == {name for name, family in GENERATION.items() if family.files}
