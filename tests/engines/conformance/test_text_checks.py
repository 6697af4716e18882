"""A right language model passes every check, and each check finds the fault that it is there for."""

from collections.abc import Awaitable, Callable

import pytest

from engines.conformance import ConformanceFault, text_checks
from engines.conformance.suite import TEXT_CHECKS, run_async
from engines.conformance.text_bench import TextBench
from fakes import parrots
from fakes.parrots import Parrot, samples

FAULTS: list[tuple[Callable[[TextBench], Awaitable[None]], type[Parrot], str]] = [
    (text_checks.the_last_delta_alone_says_why, parrots.Endless, "finish_reason: expected"),
    (text_checks.usage_adds_up, parrots.Miscounting, "tokens: expected 0 ≤ cached ≤ prompt"),
    (text_checks.usage_adds_up, parrots.Talkative, "completion_tokens: expected at most 5, got 6"),
    (text_checks.max_tokens_ends_an_answer, parrots.Talkative, "expected at most 1, got 6"),
    (text_checks.deltas_join_to_the_text, parrots.Stuttering, "again and a beginning of it"),
    (text_checks.batching_equals_solo, parrots.Overhearing, "side by side: expected"),
    (text_checks.wrong_conversations_are_invalid, parrots.Crashing, "expected InvalidInput, but the model raised IndexError"),
    (text_checks.sampling_is_checked, parrots.Strict, "top_p=7.0: .* raised ZeroDivisionError"),
    (text_checks.stopping_frees_the_model, parrots.Holding, "the next did not come"),
    (text_checks.seeds_matter, parrots.Seedless, "5 seeds: expected different answers"),
    (text_checks.seeds_matter, parrots.Restless, "the same seeds again"),
    (text_checks.endings_are_log_probabilities, parrots.Likely, "log-probability of at most 0, got 0.5"),
]
NAMES = [f"{check.__name__}-{model.__name__}" for check, model, _ in FAULTS]


async def test_a_right_model_passes_everything():
    results = await run_async(TEXT_CHECKS, TextBench(Parrot(), samples()))
    assert [result for result in results if result.fault or result.skipped] == []


@pytest.mark.parametrize(("check", "model", "fault"), FAULTS, ids=NAMES)
async def test_each_check_finds_its_fault(
    check: Callable[[TextBench], Awaitable[None]], model: type[Parrot], fault: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(text_checks, "ANSWER_LIMIT_S", 0.2)
    with pytest.raises(ConformanceFault, match=fault):
        await check(TextBench(model(), samples()))


def test_no_check_is_without_a_model_that_fails_it():
    assert {check for check, _, _ in FAULTS} == set(TEXT_CHECKS)
