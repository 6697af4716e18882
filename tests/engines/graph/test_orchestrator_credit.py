"""Who waits for whom: slow readers, slow stages, eager callers, stages that overstep."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from engines.graph.graph_counters import Outcome
from engines.graph.stage_run import GRANT_CHUNKS, WINDOW_CHUNKS
from engines.messages.to_gateway import ErrorKind
from engines.messages.to_worker import PUSH_WINDOW
from engines.payloads import Payload
from engines.requests import RequestFailed
from fakes.cascade import Bench, collect, feed, request, silent, texts
from fakes.worker import EMPTY, FakeStage, inline


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    async with Bench(tmp_path).running() as bench:
        yield bench
    assert bench.is_empty()


async def test_a_slow_reader_stops_its_own_stages_and_nobody_elses(bench: Bench) -> None:
    progress = asyncio.Event()

    async def endless(stage: FakeStage) -> None:
        while True:
            if stage.credit == 0:
                progress.set()
            await stage.emit(Payload(text="."))

    bench.ears.scripts["mind"] = endless
    slow = await bench.orchestrator.submit(request("slow", "text", entry="mind"))
    await progress.wait()
    stage = bench.ears.stage("slow", "mind")
    assert stage.emitted == WINDOW_CHUNKS
    async with await bench.orchestrator.submit(request("quick", "text", entry="mind")) as quick:
        reader = aiter(quick)
        for _ in range(3 * WINDOW_CHUNKS):
            await anext(reader)
    assert stage.emitted == WINDOW_CHUNKS
    progress.clear()
    for _ in range(GRANT_CHUNKS):
        await anext(aiter(slow))
    await bench.ears.until(lambda: stage.emitted == WINDOW_CHUNKS + GRANT_CHUNKS)
    await slow.abort()


async def test_a_slow_stage_holds_up_whoever_feeds_it(bench: Bench) -> None:
    bench.voice.scripts["mouth"] = silent
    stream = await bench.orchestrator.submit(request("r", "audio", entry="mind"))
    feeding = asyncio.create_task(feed(stream, *["x"] * 1_000))
    await bench.voice.until(lambda: bench.voice.untaken("r", "mouth") == PUSH_WINDOW)
    # The stage before it has used its own window, of which the mouth has taken nothing, and stops taking input.
    await bench.ears.until(lambda: bench.ears.untaken("r", "mind") == PUSH_WINDOW)
    assert bench.ears.stage("r", "mind").emitted == WINDOW_CHUNKS
    assert not feeding.done()
    await stream.abort()
    await feeding


async def test_what_the_caller_pushes_waits_for_the_engine(bench: Bench) -> None:
    takes = asyncio.Semaphore(0)

    async def reluctant(stage: FakeStage) -> None:
        while True:
            await takes.acquire()
            await stage.take()

    bench.ears.scripts["ear"] = reluctant
    stream = await bench.orchestrator.submit(request("r", "heard"))
    for _ in range(PUSH_WINDOW):
        await stream.push(Payload(text="x"))
    one_more = asyncio.create_task(stream.push(Payload(text="x")))
    await bench.ears.until(lambda: bench.ears.untaken("r", "ear") == PUSH_WINDOW)
    assert not one_more.done()
    takes.release()
    await one_more
    await stream.abort()


async def test_a_stage_beyond_its_window_or_out_of_order_is_an_engine_fault(bench: Bench) -> None:
    async def greedy(stage: FakeStage) -> None:
        for _ in range(WINDOW_CHUNKS + 1):
            stage.emit_without_credit()

    async def confused(stage: FakeStage) -> None:
        stage.emit_without_credit(seq=1)

    for script, words in ((greedy, "window"), (confused, "seq 0")):
        bench.voice.scripts["mouth"] = script
        async with await bench.orchestrator.submit(request("r", "audio", entry="mouth")) as stream:
            with pytest.raises(RequestFailed, match=words) as failed:
                await collect(stream)
        assert failed.value.kind is ErrorKind.ENGINE


async def test_outputs_that_are_complete_end_the_request_even_when_a_stage_before_them_goes_on(bench: Bench) -> None:
    async def first_only(stage: FakeStage) -> None:
        push = await stage.take()
        await stage.emit(inline(push), final=True)

    bench.voice.scripts["mouth"] = first_only
    async with await bench.orchestrator.submit(request("r", "audio")) as stream:
        await stream.push(Payload(text="enough"))
        assert texts(await collect(stream), "audio") == ["enough"]
        await stream.push(Payload(text="more"))
    assert bench.ears.aborted == ["r"]
    assert bench.orchestrator.counters.ended == {Outcome.COMPLETED: 1}


async def test_input_after_the_final_input_is_the_callers_mistake(bench: Bench) -> None:
    async with await bench.orchestrator.submit(request("r", "heard")) as stream:
        await stream.push(EMPTY, final=True)
        with pytest.raises(ValueError, match="final"):
            await stream.push(EMPTY)
