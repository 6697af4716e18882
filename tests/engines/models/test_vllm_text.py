"""The language model on vLLM, with real weights: one engine for the whole file."""

import asyncio
import shutil
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from pathlib import Path

import msgspec
import pytest
import pytest_asyncio

from engines.conformance.family_samples import conversations
from engines.conformance.suite import TEXT_CHECKS, run_async
from engines.conformance.text_bench import TextBench
from engines.models import InvalidInput
from engines.models.text import TextDelta
from engines.models.vllm_text import VllmText
from engines.parameters import Generation, Message

pytestmark = [
    pytest.mark.real_models,
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.timeout(180),
    pytest.mark.filterwarnings("ignore"),  # vLLM's and its libraries' own
]

SYSTEM = Message("system", "You are a helpful AI assistant named SmolLM, trained by Hugging Face")
CONTEXT_TOKENS = 512


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All that vLLM may call: a machine without a compiler must be able to answer."""
    folder = tmp_path_factory.mktemp("bin")
    for name in ("lscpu", "sh"):
        (folder / name).symlink_to(shutil.which(name) or f"/bin/{name}")
    return folder


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def model(weights: Callable[[str], Path], programs: Path) -> AsyncGenerator[VllmText, None]:
    pytest.importorskip("vllm")
    options: dict[str, object] = {"max_model_len": CONTEXT_TOKENS, "kv_cache_mb": 64, "warm_prompt": SYSTEM.content}
    directory = weights("smollm2-135m-instruct")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OMP_NUM_THREADS", "1")  # as the worker's main sets it, for vLLM's own process
        patch.setenv("PATH", str(programs))
        loaded = await asyncio.get_running_loop().run_in_executor(None, VllmText.load, directory, options, 4)
        await loaded.warm_up()
        yield loaded
        loaded.shutdown()


async def answer(model: VllmText, *messages: Message, **parameters: object) -> list[TextDelta]:
    generation = msgspec.convert({"type": "generation", **parameters}, Generation)
    return [delta async for delta in model.generate((SYSTEM, *messages), generation)]


def text(deltas: list[TextDelta]) -> str:
    return "".join(delta.text for delta in deltas)


async def test_two_prompts_stream_side_by_side(model: VllmText) -> None:
    france, italy = await asyncio.gather(
        answer(model, Message("user", "What is the capital of France?")),
        answer(model, Message("user", "What is the capital of Italy?")),
    )
    assert "Paris" in text(france)
    assert "Rome" in text(italy)
    for deltas in (france, italy):
        assert len(deltas) >= 4
        assert [delta.finish_reason for delta in deltas] == [""] * (len(deltas) - 1) + ["stop"]
        assert deltas[-1].completion_tokens >= len(deltas)


async def test_the_second_turn_finds_the_first_in_the_cache(model: VllmText) -> None:
    question = Message("user", "Tell me in a few sentences what a lighthouse is good for, please.")
    first = await answer(model, question, max_tokens=48)
    second = await answer(model, question, Message("assistant", text(first)), Message("user", "And at night?"), max_tokens=4)
    assert second[-1].prompt_tokens > first[-1].prompt_tokens
    assert second[-1].cached_tokens >= first[-1].prompt_tokens - first[-1].prompt_tokens % 32


async def test_closing_the_stream_stops_the_model(model: VllmText) -> None:
    long = Generation((), max_tokens=400)
    async with aclosing(model.generate((SYSTEM, Message("user", "Tell me a long story.")), long)) as deltas:
        await anext(deltas)
    assert model._engine.get_num_unfinished_requests() == 0  # pyright: ignore[reportPrivateUsage] (only vLLM knows)
    assert "Paris" in text(await answer(model, Message("user", "What is the capital of France?")))


async def test_max_tokens_ends_with_length_and_defaults_to_what_fits(model: VllmText) -> None:
    counted = await answer(model, Message("user", "Count to one hundred."), max_tokens=5)
    assert (counted[-1].completion_tokens, counted[-1].finish_reason) == (5, "length")
    filler = Message("user", "Tell me a story. " * 85)
    filled = await answer(model, filler)
    assert filled[-1].prompt_tokens + filled[-1].completion_tokens <= CONTEXT_TOKENS


@pytest.mark.parametrize("words", [600, 300_000])
async def test_a_prompt_that_does_not_fit_is_refused_with_the_numbers(model: VllmText, words: int) -> None:
    with pytest.raises(InvalidInput, match=r"messages: expected fewer than 512 tokens, got (at least )?\d+"):
        await answer(model, Message("user", "word " * words))


async def test_sampling_values_that_the_model_refuses_are_the_requests_fault(model: VllmText) -> None:
    with pytest.raises(InvalidInput, match="top_p"):
        await answer(model, Message("user", "Hello."), top_p=7.0)


async def test_equal_seeds_give_equal_answers(model: VllmText) -> None:
    asked = Message("user", "Name a colour.")
    one, two = [await answer(model, asked, temperature=1.0, seed=5, max_tokens=12) for _ in range(2)]
    assert text(one) == text(two)


async def test_unknown_options_are_named(weights: Callable[[str], Path]) -> None:
    with pytest.raises(msgspec.ValidationError, match="max_length"):
        VllmText.load(weights("smollm2-135m-instruct"), {"max_length": 5}, 4)


async def test_a_finished_sentence_is_likelier_to_end_than_a_begun_one(model: VllmText) -> None:
    finished = await model.ending((SYSTEM, Message("user", "What is the capital of France")))
    begun = await model.ending((SYSTEM, Message("user", "What is the capital of")))
    assert begun < -2 < -0.5 < finished <= 0


async def test_it_keeps_every_promise_of_the_contract(model: VllmText) -> None:
    results = await run_async(TEXT_CHECKS, TextBench(model, conversations({})))
    assert [result for result in results if result.fault or result.skipped] == []
