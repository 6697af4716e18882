"""Which checks there are, and what became of them."""

import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import NamedTuple, TypeAlias, TypeVar

from engines.conformance import (
    ConformanceFault,
    NotApplicable,
    batch_checks,
    diffusion_checks,
    output_checks,
    state_checks,
    text_checks,
    worker_checks,
)
from engines.conformance.diffusion_bench import DiffusionBench
from engines.conformance.generation_bench import GenerationBench
from engines.conformance.text_bench import TextBench
from engines.conformance.worker_bench import WorkerBench
from engines.worker.foreign import attempt, attempt_async

Bench = TypeVar("Bench")
Check: TypeAlias = Callable[[Bench], None]
AsyncCheck: TypeAlias = Callable[[Bench], Awaitable[None]]

GENERATION_CHECKS: tuple[Check[GenerationBench], ...] = (
    output_checks.samples_make_something,
    output_checks.repeats_itself,
    batch_checks.keys_are_pure,
    batch_checks.batching_equals_solo,
    batch_checks.rows_keep_their_order,
    state_checks.interleaving_changes_nothing,
    batch_checks.wrong_parameters_are_refused,
    batch_checks.wrong_inputs_are_invalid,
    batch_checks.strange_inputs_raise_nothing_else,
    batch_checks.a_raise_costs_the_guilty_row_alone,
    state_checks.reset_begins_anew,
    state_checks.snapshots_change_nothing,
    state_checks.snapshots_are_small,
    state_checks.restored_goes_on,
    state_checks.restored_goes_on_elsewhere,
    state_checks.unreadable_snapshots_are_refused,
    output_checks.seeds_matter,
    output_checks.nothing_owes_nothing,
    output_checks.times_and_units_advance,
    output_checks.outputs_travel,
    output_checks.outputs_stay_as_they_were,
    output_checks.inputs_are_let_go,
    output_checks.memory_stays_flat,
)

DIFFUSION_CHECKS: tuple[Check[DiffusionBench], ...] = (
    output_checks.samples_make_something,
    output_checks.repeats_itself,
    diffusion_checks.jobs_count_down,
    batch_checks.batching_equals_solo,
    batch_checks.rows_keep_their_order,
    state_checks.interleaving_changes_nothing,
    diffusion_checks.joining_midway_changes_nothing,
    diffusion_checks.an_abandoned_job_costs_no_other,
    diffusion_checks.a_raise_costs_the_guilty_job_alone,
    batch_checks.wrong_parameters_are_refused,
    batch_checks.wrong_inputs_are_invalid,
    batch_checks.strange_inputs_raise_nothing_else,
    diffusion_checks.a_refused_update_changes_nothing,
    state_checks.reset_begins_anew,
    state_checks.snapshots_change_nothing,
    state_checks.snapshots_are_small,
    state_checks.restored_goes_on,
    state_checks.restored_goes_on_elsewhere,
    state_checks.unreadable_snapshots_are_refused,
    output_checks.seeds_matter,
    output_checks.times_and_units_advance,
    output_checks.outputs_travel,
    output_checks.outputs_stay_as_they_were,
    diffusion_checks.previews_stay_as_they_were,
    diffusion_checks.inputs_are_copied,
    output_checks.memory_stays_flat,
)

TEXT_CHECKS: tuple[AsyncCheck[TextBench], ...] = (
    text_checks.the_last_delta_alone_says_why,
    text_checks.usage_adds_up,
    text_checks.max_tokens_ends_an_answer,
    text_checks.deltas_join_to_the_text,
    text_checks.batching_equals_solo,
    text_checks.wrong_conversations_are_invalid,
    text_checks.sampling_is_checked,
    text_checks.stopping_frees_the_model,
    text_checks.seeds_matter,
    text_checks.endings_are_log_probabilities,
)

WORKER_CHECKS: tuple[AsyncCheck[WorkerBench], ...] = (
    worker_checks.a_worker_serves_it,
    worker_checks.an_abort_leaves_nothing,
    worker_checks.wrong_input_is_the_requests_fault,
)


class Result(NamedTuple):
    """`promise` is what the check holds the model to. `fault` is empty when it holds; `skipped` says why nothing was tried."""

    check: str
    promise: str
    fault: str
    skipped: str
    seconds: float


def run(checks: Sequence[Check[Bench]], bench: Bench) -> Iterator[Result]:
    for check in checks:
        started = time.perf_counter()
        outcome = attempt(check, bench)
        yield _result(check, outcome, time.perf_counter() - started)


async def run_async(checks: Sequence[AsyncCheck[Bench]], bench: Bench) -> list[Result]:
    results: list[Result] = []
    for check in checks:
        started = time.perf_counter()
        outcome = await attempt_async(check(bench))
        results.append(_result(check, outcome, time.perf_counter() - started))
    return results


def _result(check: Callable[..., object], outcome: object, seconds: float) -> Result:
    fault = skipped = ""
    if isinstance(outcome, NotApplicable):
        skipped = str(outcome)
    elif isinstance(outcome, ConformanceFault):
        fault = str(outcome)
    elif isinstance(outcome, Exception):
        fault = f"the check was cut short by {outcome!r}"
    return Result(check.__name__, (check.__doc__ or "").strip(), fault, skipped, seconds)
