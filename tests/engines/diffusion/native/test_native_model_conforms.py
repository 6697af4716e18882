"""A native step model keeps every promise of the contract, whatever its network takes and however it is solved."""

from pathlib import Path

import pytest

from engines.conformance.__main__ import main
from engines.conformance.diffusion_bench import DiffusionBench
from engines.conformance.samples import GenerationSamples
from engines.conformance.suite import DIFFUSION_CHECKS, Check, run
from fakes.tiny_world import TinyWorldModel, samples

WAYS: dict[str, dict[str, object]] = {
    "padded flow": {"pad_to": 4},
    "edm in steps of Heun, not padded": {"takes": "edm", "solver": "heun"},
}
DEPLOYMENT = """
pipeline: fakes.tiny_world:WORLDS
workers:
  one: {stages: [world]}
stages:
  world: {model: "fakes.tiny_world:TinyWorldModel", directory: ., options: {pad_to: 4, takes: edm}}
"""


@pytest.fixture(scope="module", params=WAYS.values(), ids=list(WAYS))
def bench(request: pytest.FixtureRequest) -> DiffusionBench:
    options: dict[str, object] = request.param
    tried: GenerationSamples = samples(options)

    def load() -> TinyWorldModel:
        model = TinyWorldModel.load(Path(), options)
        model.warm_up()
        return model

    return DiffusionBench(load, tried)


@pytest.mark.parametrize("check", DIFFUSION_CHECKS, ids=lambda check: check.__name__)
def test_it_conforms(bench: DiffusionBench, check: Check[DiffusionBench]) -> None:
    assert [(result.fault, result.skipped) for result in run([check], bench)] == [("", "")]


@pytest.mark.full
def test_it_conforms_behind_a_worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[3]))
    (tmp_path / "d.yaml").write_text(DEPLOYMENT)
    said = main(["world", "--config", str(tmp_path / "d.yaml"), "--samples", "fakes.tiny_world:samples"])
    *lines, last = capsys.readouterr().out.splitlines()
    assert (said, last, {line[0] for line in lines}) == (0, "world: no faults", {"✓"})
