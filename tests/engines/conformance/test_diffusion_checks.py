"""A right DIFFUSION model passes every check, and each check that only such models have finds the fault that it is there for."""

from collections.abc import Callable
from pathlib import Path

import pytest

from engines.conformance import ConformanceFault, batch_checks, diffusion_checks, output_checks
from engines.conformance.__main__ import main
from engines.conformance.diffusion_bench import DiffusionBench
from engines.conformance.suite import DIFFUSION_CHECKS, GENERATION_CHECKS, run
from fakes import broken_counters as broken
from fakes.step_counter import StepCounter, samples

FAULTS: list[tuple[Callable[[DiffusionBench], None], type[StepCounter], str]] = [
    (diffusion_checks.jobs_count_down, broken.Fickle, "key, rows, calls_left, step, steps, prepares: expected"),
    (diffusion_checks.jobs_count_down, broken.Unfinished, "at the end: expected step = steps, got 2 of 3"),
    (batch_checks.batching_equals_solo, broken.Blending, "batched with others, sequence 0 differs"),
    (batch_checks.batching_equals_solo, broken.Endless, "calls_left: expected 0 at some time"),
    (batch_checks.rows_keep_their_order, broken.Backwards, "batched in reverse order"),
    (diffusion_checks.joining_midway_changes_nothing, broken.InStep, "joined after 1 calls, sequence 1 differs"),
    (diffusion_checks.an_abandoned_job_costs_no_other, broken.Blending, "beside a job that was given up after 1 calls"),
    (diffusion_checks.an_abandoned_job_costs_no_other, broken.Sticky, "after its job was given up after 0 calls, and reset"),
    (diffusion_checks.a_raise_costs_the_guilty_job_alone, broken.Hasty, "the job has -1 calls left"),
    (diffusion_checks.a_refused_update_changes_nothing, broken.Obedient, "after update 0 was refused"),
    (diffusion_checks.a_refused_update_changes_nothing, broken.Angry, "update 0: expected InvalidInput or nothing"),
    (diffusion_checks.inputs_are_copied, broken.Clinging, "its array start is still held after begin"),
    (output_checks.memory_stays_flat, broken.Leaking, "expected at most 4096 bytes kept a round"),
    (diffusion_checks.previews_stay_as_they_were, broken.Smearing, "changed after it was out"),
]
DEPLOYMENT = """
pipeline: fakes.step_counter:COUNTERS
workers:
  one: {stages: [counter]}
stages:
  counter: {model: "fakes.step_counter:StepCounter", directory: .}
"""


def bench(model: type[StepCounter]) -> DiffusionBench:
    return DiffusionBench(lambda: model(), samples())


def test_a_right_model_passes_every_check():
    assert [result.fault or result.skipped for result in run(DIFFUSION_CHECKS, bench(StepCounter))] == [""] * len(
        DIFFUSION_CHECKS
    )


@pytest.mark.parametrize(
    ("check", "model", "fault"), FAULTS, ids=[f"{check.__name__}-{model.__name__}" for check, model, _ in FAULTS]
)
def test_each_check_finds_its_fault(check: Callable[[DiffusionBench], None], model: type[StepCounter], fault: str):
    with pytest.raises(ConformanceFault, match=fault):
        check(bench(model))


def test_no_check_of_jobs_is_without_a_model_that_fails_it():
    assert set(DIFFUSION_CHECKS) - {check for check, _, _ in FAULTS} <= set(GENERATION_CHECKS)


def test_a_stage_is_tried_here_and_behind_a_worker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    (tmp_path / "d.yaml").write_text(DEPLOYMENT)
    said = main(["counter", "--config", str(tmp_path / "d.yaml"), "--samples", "fakes.step_counter:samples"])
    *lines, last = capsys.readouterr().out.splitlines()
    assert (said, last, {line[0] for line in lines}) == (0, "counter: no faults", {"✓"})
    assert len(lines) == len(DIFFUSION_CHECKS) + 3
