"""A right model passes every check, and each check finds the fault that it is there for."""

from collections.abc import Callable

import pytest

from engines.conformance import ConformanceFault, batch_checks, output_checks, state_checks
from engines.conformance.generation_bench import GenerationBench
from engines.conformance.suite import GENERATION_CHECKS, run
from fakes import broken_tallies as broken
from fakes.tally import Tally, samples

FAULTS: list[tuple[Callable[[GenerationBench], None], type[Tally], str]] = [
    (output_checks.samples_make_something, broken.Mute, "gave nothing at all"),
    (output_checks.repeats_itself, broken.Restless, "run again, sequence 0 differs"),
    (output_checks.repeats_itself, broken.DifferentEachTime, "run by another instance"),
    (batch_checks.keys_are_pure, broken.Fickle, "batch_key: expected 0 for the same input again, got 1"),
    (batch_checks.batching_equals_solo, broken.Unhashable, "expected something hashable"),
    (batch_checks.batching_equals_solo, broken.Blending, "batched with others, sequence 0 differs"),
    (batch_checks.rows_keep_their_order, broken.Backwards, "batched in reverse order"),
    (state_checks.interleaving_changes_nothing, broken.Shared, "interleaved with another"),
    (batch_checks.wrong_parameters_are_refused, broken.Welcoming, "open with .* expected InvalidInput"),
    (
        batch_checks.wrong_inputs_are_invalid,
        broken.Swallowing,
        "wrong input 0 alone: expected InvalidInput, but the model answered",
    ),
    (batch_checks.wrong_inputs_are_invalid, broken.Terse, "expected a sentence like .* got 'no'"),
    (batch_checks.wrong_inputs_are_invalid, broken.Infected, "the model gave InvalidInput"),
    (batch_checks.strange_inputs_raise_nothing_else, broken.Trusting, "no attribute gain: .* raised KeyError"),
    (batch_checks.a_raise_costs_the_guilty_row_alone, broken.Hasty, "beside a row that raises"),
    (state_checks.reset_begins_anew, broken.Unforgetting, "reset after 1 inputs"),
    (state_checks.snapshots_change_nothing, broken.Draining, "with a snapshot after 1 inputs"),
    (state_checks.snapshots_change_nothing, broken.Aliasing, "changed when the request went on"),
    (state_checks.snapshots_are_small, broken.Hoarding, "expected at most 1048576 bytes"),
    (state_checks.restored_goes_on, broken.Forgetful, "restored after 1 inputs"),
    (state_checks.restored_goes_on_elsewhere, broken.Homesick, "restore raised KeyError"),
    (state_checks.unreadable_snapshots_are_refused, broken.Credulous, "an empty payload .* restored it"),
    (output_checks.seeds_matter, broken.Seedless, "another seed gave the same"),
    (output_checks.nothing_owes_nothing, broken.Eager, "expected nothing, got 1"),
    (output_checks.times_and_units_advance, broken.Rewinding, "pts: expected"),
    (output_checks.times_and_units_advance, broken.Uncounting, "units: expected 0 or more"),
    (output_checks.outputs_travel, broken.Unsendable, "cannot be sent"),
    (output_checks.outputs_stay_as_they_were, broken.Reusing, "chunk 0 changed after it was out"),
    (output_checks.inputs_are_let_go, broken.Clinging, "its array values is still held"),
    (output_checks.memory_stays_flat, broken.Leaking, "kept a round"),
]
NAMES = [f"{check.__name__}-{model.__name__}" for check, model, _ in FAULTS]


def bench(model: type[Tally]) -> GenerationBench:
    return GenerationBench(model, samples())


def test_a_right_model_passes_everything():
    results = list(run(GENERATION_CHECKS, bench(Tally)))
    assert [result for result in results if result.fault or result.skipped] == []
    assert all(result.promise for result in results)


@pytest.mark.parametrize(
    ("check", "model", "fault"), FAULTS, ids=[f"{check.__name__}-{model.__name__}" for check, model, _ in FAULTS]
)
def test_each_check_finds_its_fault(check: Callable[[GenerationBench], None], model: type[Tally], fault: str):
    with pytest.raises(ConformanceFault, match=fault):
        check(bench(model))


def test_no_check_is_without_a_model_that_fails_it():
    assert {check for check, _, _ in FAULTS} == set(GENERATION_CHECKS)


def test_what_a_model_raises_is_a_result_and_ends_nothing():
    class Raising(Tally):
        def close(self, state: object) -> None:
            raise OSError("scripted")

    results = list(run(GENERATION_CHECKS, bench(Raising)))
    assert len(results) == len(GENERATION_CHECKS)
    assert any("scripted" in result.fault for result in results)
