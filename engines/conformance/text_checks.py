"""What a language model must hold to (engines/models/text.py)."""

import asyncio
import math

import msgspec

from engines.conformance import ConformanceFault, NotApplicable
from engines.conformance.text_bench import TextBench
from engines.models import InvalidInput
from engines.models.text import TextDelta
from engines.worker.foreign import attempt_async

SEEDS = range(1, 6)
ANSWER_LIMIT_S = 60.0
STOPS = 16
LONG_ANSWER_TOKENS = 32


async def the_last_delta_alone_says_why(bench: TextBench) -> None:
    """finish_reason is set on the last delta, and on no other"""
    for conversation in bench.samples.conversations:
        reasons = [delta.finish_reason for delta in await bench.deltas(conversation)]
        if not reasons or any(reasons[:-1]) or reasons[-1] not in ("stop", "length"):
            raise ConformanceFault(f"finish_reason: expected 'stop' or 'length' on the last delta only, got {reasons}")


async def usage_adds_up(bench: TextBench) -> None:
    """counts of tokens fit each other, grow with the text and respect max_tokens"""
    for conversation in bench.samples.conversations:
        deltas = await bench.deltas(conversation)
        if fault := _usage_fault(deltas, bench.samples.parameters.max_tokens):
            raise ConformanceFault(fault)


async def max_tokens_ends_an_answer(bench: TextBench) -> None:
    """with max_tokens 1 an answer ends with `length` after one token, or with `stop`"""
    short = msgspec.structs.replace(bench.samples.parameters, max_tokens=1)
    last = (await bench.deltas(bench.samples.conversations[0], short))[-1]
    if last.completion_tokens > 1:
        raise ConformanceFault(f"completion_tokens: expected at most 1, got {last.completion_tokens}")


async def deltas_join_to_the_text(bench: TextBench) -> None:
    """the deltas of a shorter answer are the beginning of the longer one, and of the same one again"""
    limit = bench.samples.parameters.max_tokens or LONG_ANSWER_TOKENS
    half = msgspec.structs.replace(bench.samples.parameters, max_tokens=max(1, limit // 2))
    for conversation in bench.samples.conversations:
        whole, again = await bench.text(conversation), await bench.text(conversation)
        beginning = (await bench.text(conversation, half)).rstrip("\ufffd")
        if whole != again or not whole.startswith(beginning):
            raise ConformanceFault(
                f"asked thrice: expected {whole!r} again and a beginning of it, got {again!r} and {beginning!r}"
            )


async def batching_equals_solo(bench: TextBench) -> None:
    """answers side by side are those that each gets alone"""
    alone = [await bench.text(conversation) for conversation in bench.samples.conversations]
    together = await asyncio.gather(*(bench.text(conversation) for conversation in bench.samples.conversations))
    for expected, got in zip(alone, together, strict=True):
        if expected != got:
            raise ConformanceFault(f"side by side: expected {expected!r} as alone, got {got!r}")


async def wrong_conversations_are_invalid(bench: TextBench) -> None:
    """a wrong conversation is InvalidInput that names its fault, and others go on"""
    good = bench.samples.conversations[0]
    alone = await bench.text(good)
    beside, error = await asyncio.gather(bench.text(good), bench.refused(bench.samples.wrong))
    if "expected" not in str(error):
        raise ConformanceFault(f"InvalidInput: expected a sentence like 'field: expected …, got …', got {str(error)!r}")
    if beside != alone:
        raise ConformanceFault(f"beside a wrong conversation: expected {alone!r}, got {beside!r}")


async def sampling_is_checked(bench: TextBench) -> None:
    """values that no sampler takes are InvalidInput or served, and nothing else"""
    usual, asked = bench.samples.parameters, bench.samples.conversations[0]
    for name, value in (("top_p", 7.0), ("temperature", -1.0), ("max_tokens", -5), ("repetition_penalty", -2.0)):
        strange = msgspec.structs.replace(usual, **{name: value})
        answer = await attempt_async(bench.read(asked, strange))
        if isinstance(answer, Exception) and not isinstance(answer, InvalidInput):
            raise ConformanceFault(f"{name}={value}: expected InvalidInput or an answer, but the model raised {answer!r}")


async def stopping_frees_the_model(bench: TextBench) -> None:
    """answers that are closed in the middle leave room for the next"""
    first, second = bench.samples.conversations[:2]
    alone = await bench.text(second)
    try:
        async with asyncio.timeout(ANSWER_LIMIT_S):
            for _ in range(STOPS):
                await bench.begin_and_stop(first)
            after = await bench.text(second)
    except TimeoutError:
        raise ConformanceFault(f"after {STOPS} answers that were closed in the middle, the next did not come") from None
    if after != alone:
        raise ConformanceFault(f"after answers that were closed in the middle: expected {alone!r}, got {after!r}")


async def seeds_matter(bench: TextBench) -> None:
    """the same seed gives the same answer, others give others"""
    if bench.samples.drawing is None:
        raise NotApplicable("it draws nothing")
    asked, answers = bench.samples.conversations[0], list[str]()
    for seed in (*SEEDS, *SEEDS):
        drawn = msgspec.structs.replace(bench.samples.drawing, seed=seed)
        answers.append(await bench.text(asked, drawn))
    first, again = answers[: len(SEEDS)], answers[len(SEEDS) :]
    if first != again:
        raise ConformanceFault(f"the same seeds again: expected {first}, got {again}")
    if len(set(first)) == 1:
        raise ConformanceFault(f"{len(SEEDS)} seeds: expected different answers, got {first[0]!r} each time")


async def endings_are_log_probabilities(bench: TextBench) -> None:
    """`ending` is a log-probability, and the same when asked again"""
    for conversation in bench.samples.conversations:
        first, again = await bench.model.ending(conversation), await bench.model.ending(conversation)
        # A sum of rounded probabilities may be a little more than one.
        if math.isnan(first) or first > 1e-3:
            raise ConformanceFault(f"ending: expected a log-probability of at most 0, got {first}")
        if not math.isclose(first, again, abs_tol=1e-3):
            raise ConformanceFault(f"ending: expected {first} again, got {again}")


def _usage_fault(deltas: list[TextDelta], max_tokens: int | None) -> str:
    last, before = deltas[-1], 0
    for delta in deltas:
        if delta.completion_tokens < before:
            return f"completion_tokens: expected {before} or more, got {delta.completion_tokens}"
        if delta.text and delta.completion_tokens == 0:
            return f"completion_tokens: expected at least 1 with the text {delta.text!r}, got 0"
        before = delta.completion_tokens
    if last.prompt_tokens < 1 or not 0 <= last.cached_tokens <= last.prompt_tokens:
        return f"tokens: expected 0 ≤ cached ≤ prompt and a prompt, got {last.cached_tokens} and {last.prompt_tokens}"
    if max_tokens is not None and last.completion_tokens > max_tokens:
        return f"completion_tokens: expected at most {max_tokens}, got {last.completion_tokens}"
    return ""
