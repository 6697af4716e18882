"""Large payloads lie in shared memory: read where they lie, kept until everyone has read them, and gone then."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import numpy as np
import pytest

from engines.connectors.contents import Shared
from engines.payloads import Array, Payload
from engines.requests import RequestFailed
from fakes.cascade import Bench, collect, feed, request
from fakes.worker import FakeStage

ARENA_BYTES = 1 << 20
SAMPLES = 20_000


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    async with Bench(tmp_path, ARENA_BYTES).running() as bench:
        yield bench


def large(value: int) -> Payload:
    return Payload(arrays={"x": Array.of(np.full(SAMPLES, value, np.uint8))})


async def three_large_ones(stage: FakeStage) -> None:
    while not stage.input_has_ended:
        await stage.take()
    for number in range(3):
        await stage.emit(large(number))
    await stage.emit(final=True)


async def test_they_cross_the_graph_by_reference_and_go_when_all_have_read_them(bench: Bench) -> None:
    bench.ears.scripts["ear"] = three_large_ones
    async with await bench.orchestrator.submit(request("r", "heard", "audio")) as stream:
        await feed(stream, "go")
        deliveries = await collect(stream)
        for output in ("heard", "audio"):
            arrays = [d.payload.arrays["x"].numpy() for d in deliveries if d.output == output and d.payload.arrays]
            assert [(array[0], array[-1], len(array)) for array in arrays] == [(number, number, SAMPLES) for number in range(3)]
    await bench.ears.until(lambda: not bench.ears.payloads())
    assert bench.is_empty()


async def test_what_the_caller_has_not_read_stays_when_the_stage_is_long_done(bench: Bench) -> None:
    bench.ears.scripts["ear"] = three_large_ones
    async with await bench.orchestrator.submit(request("r", "heard")) as stream:
        await feed(stream, "go")
        await bench.ears.until(lambda: bench.ears.payloads() == 3)
        first = await anext(aiter(stream))
        await bench.ears.until(lambda: bench.ears.payloads() == 2)
        assert (first.payload.arrays["x"].numpy() == 0).all()  # forgotten by its producer, and still whole
        assert len(await collect(stream)) == 3
    await bench.ears.until(lambda: not bench.ears.payloads())


async def test_an_abort_leaves_none_of_those_that_nobody_read(bench: Bench) -> None:
    bench.ears.scripts["ear"] = three_large_ones
    async with await bench.orchestrator.submit(request("r", "heard")) as stream:
        await feed(stream, "go")
        await bench.ears.until(lambda: bench.ears.payloads() == 3)
    await bench.ears.until(lambda: not bench.ears.payloads())
    assert bench.is_empty()


async def test_a_payload_that_is_lost_fails_the_request_by_name(bench: Bench) -> None:
    async def forgetful(stage: FakeStage) -> None:
        await stage.emit(large(1))
        stage.drop_payloads()
        await stage.emit(final=True)

    bench.ears.scripts["ear"] = forgetful
    async with await bench.orchestrator.submit(request("r", "heard")) as stream:
        with pytest.raises(RequestFailed, match="payload 0 of ears/r~0/0/ear"):
            await collect(stream)
    assert bench.is_empty()


async def test_the_callers_own_payloads_go_once_they_are_taken(bench: Bench) -> None:
    seen: list[bool] = []

    async def look(stage: FakeStage) -> None:
        while not stage.input_has_ended:
            push = await stage.take()
            seen.append(isinstance(push.content, Shared))
            await stage.emit(Payload(str(stage.read(push).nbytes)), final=stage.input_has_ended)

    bench.ears.scripts["ear"] = look
    async with await bench.orchestrator.submit(request("r", "heard")) as stream:
        for number in range(100):  # five times what the arena holds
            await stream.push(large(number))
            assert (await anext(aiter(stream))).payload.text == str(SAMPLES)
        await stream.push(Payload(), final=True)
        await collect(stream)
    assert seen == [True] * 100 + [False]
    assert bench.connectors.holds("gateway/r/0/>ear") == 0


async def test_the_end_of_the_others_leaves_what_the_caller_has_still_to_read(bench: Bench) -> None:
    """The last stage is done before its upstream, in the same worker, which hears an abort for that."""

    async def early(stage: FakeStage) -> None:
        await stage.emit(large(7))
        await stage.emit(final=True)

    async def mute(stage: FakeStage) -> None:
        await asyncio.Event().wait()

    bench.ears.scripts = {"ear": mute, "mind": early}
    async with await bench.orchestrator.submit(request("r", "text")) as stream:
        await bench.ears.until(lambda: bench.ears.aborted == ["r"])
        assert (await anext(aiter(stream))).payload.arrays["x"].numpy()[0] == 7
        await collect(stream)
    await bench.ears.until(lambda: not bench.ears.payloads())


async def test_a_second_try_leaves_none_of_what_stages_that_were_done_said_in_the_first(bench: Bench) -> None:
    async def mute(stage: FakeStage) -> None:
        await asyncio.Event().wait()

    bench.ears.scripts["ear"] = three_large_ones
    bench.voice.scripts["mouth"] = mute
    async with (
        bench.another("voice-2", ["mouth"]) as second_voice,
        await bench.orchestrator.submit(request("r", "heard", "audio")) as stream,
    ):
        await bench.connect(second_voice)
        await feed(stream, "go")
        first = stream.attempts[0].stages
        await bench.voice.until(lambda: first["ear"].done and first["mind"].done)
        await bench.voice.crash()
        await second_voice.until(lambda: bool(second_voice.submitted))
        deliveries = await collect(stream)
        await first["ear"].link.report()  # what was said to the worker before it, has been heard
        assert len([delivery for delivery in deliveries if delivery.output == "audio" and delivery.payload.arrays]) == 3
        assert bench.ears.payloads() == 0
    assert bench.is_empty()
