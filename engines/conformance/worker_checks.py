"""The same model behind everything that stands between it and a caller."""

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any

from engines.conformance import ConformanceFault
from engines.conformance.outputs import payload_difference
from engines.conformance.worker_bench import WorkerBench
from engines.messages.to_gateway import ErrorKind
from engines.payloads import Payload
from engines.requests import Delivery, Request, RequestFailed

ANSWER_LIMIT_S = 60.0
FIRST_LIMIT_S = 1.0
ABORTS = 8


async def a_worker_serves_it(bench: WorkerBench) -> None:
    """through a worker process, every request ends with a final chunk, in order, and again the same"""
    for number in range(len(bench.inputs())):
        first, again = await _served(bench.deliveries(number)), await _served(bench.deliveries(number))
        if [delivery.seq for delivery in first] != list(range(len(first))) or not first[-1].final:
            raise ConformanceFault(f"request {number}: expected chunks 0 … final, got {[delivery.seq for delivery in first]}")
        if fault := _difference(first, again):
            raise ConformanceFault(f"request {number} again: {fault}")


async def an_abort_leaves_nothing(bench: WorkerBench) -> None:
    """requests that are aborted in mid-step are acknowledged, hold nothing, and harm no other"""
    before = await _served(bench.deliveries(0))
    beside = asyncio.create_task(_served(bench.deliveries(0)))
    given_up = bench.runtime.counters.given_up
    for number in range(ABORTS):
        await _abort(bench, number % len(bench.inputs()), after_first=number % 2 == 1)
    if fault := _difference(before, await beside):
        raise ConformanceFault(f"beside requests that were aborted: {fault}")
    if bench.runtime.counters.given_up > given_up:
        raise ConformanceFault("an abort was not acknowledged in time")
    if still := await bench.open_requests():
        raise ConformanceFault(f"after {ABORTS} aborts: expected no open requests in the worker, got {still}")
    if fault := _difference(before, await _served(bench.deliveries(0))):
        raise ConformanceFault(f"after requests that were aborted: {fault}")


async def _abort(bench: WorkerBench, number: int, *, after_first: bool) -> None:
    """While its first input is worked on, or after the first chunk of all its inputs."""
    inputs = bench.inputs()[number] or [Payload()]
    async with await bench.runtime.submit(bench.request(number)) as running:
        for payload in inputs if after_first else inputs[:1]:
            await running.push(payload, final=payload == Payload())
        if after_first:
            with suppress(TimeoutError):  # it may say nothing before its input ends
                async with asyncio.timeout(FIRST_LIMIT_S):
                    await anext(aiter(running))


async def wrong_input_is_the_requests_fault(bench: WorkerBench) -> None:
    """a wrong input or conversation fails its request as invalid, and the next is served"""
    for number, (request, wrong) in enumerate(bench.wrong_requests()):
        kind = await _failure(bench, request, wrong)
        if kind is not ErrorKind.INVALID:
            raise ConformanceFault(f"wrong input {number}: expected {ErrorKind.INVALID.value}, got {kind or 'an answer'}")
    await _served(bench.deliveries(0))


async def _failure(bench: WorkerBench, request: Request, wrong: Payload) -> ErrorKind | None:
    try:
        async with asyncio.timeout(ANSWER_LIMIT_S), await bench.runtime.submit(request) as running:
            await running.push(wrong, final=True)
            async for _ in running:
                pass
    except TimeoutError:
        raise ConformanceFault(f"a wrong input was not answered within {ANSWER_LIMIT_S:g} s") from None
    except RequestFailed as failed:
        return failed.kind
    return None


async def _served(answer: Coroutine[Any, Any, list[Delivery]]) -> list[Delivery]:
    try:
        async with asyncio.timeout(ANSWER_LIMIT_S):
            return await answer
    except TimeoutError:
        raise ConformanceFault(f"no answer within {ANSWER_LIMIT_S:g} s") from None
    except RequestFailed as failed:
        raise ConformanceFault(f"a request of the samples failed: {failed}") from failed


def _difference(expected: list[Delivery], got: list[Delivery]) -> str:
    """Between whole answers. Chunks of text may be cut otherwise, so text is compared as one."""
    texts = ["".join(delivery.payload.text for delivery in deliveries) for deliveries in (expected, got)]
    if texts[0] != texts[1]:
        return f"expected the text {texts[0]!r}, got {texts[1]!r}"
    with_arrays = [[delivery.payload for delivery in deliveries if delivery.payload.arrays] for deliveries in (expected, got)]
    if len(with_arrays[0]) != len(with_arrays[1]):
        return f"expected {len(with_arrays[0])} chunks with arrays, got {len(with_arrays[1])}"
    faults = (payload_difference(one, other) for one, other in zip(*with_arrays, strict=True))
    return next((fault for fault in faults if fault), "")
