"""Requests through the orchestrator, on fake workers behind real sockets."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from engines.connectors.process import Connectors
from engines.graph.graph_counters import Outcome
from engines.graph.orchestrator import Orchestrator
from engines.graph.stage_run import WINDOW_CHUNKS
from engines.messages.to_gateway import ErrorKind, StageState
from engines.parameters import Activity, Speech
from engines.requests import Request, RequestFailed
from fakes.cascade import Bench, collect, feed, request, texts
from fakes.pipelines import CASCADE
from fakes.worker import FakeWorker


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    async with Bench(tmp_path).running() as bench:
        yield bench
    assert bench.is_empty()


async def test_chunks_cross_the_cascade_and_every_wanted_output_ends_once(bench: Bench) -> None:
    async with await bench.orchestrator.submit(request(fence=7, epoch=3)) as stream:
        await feed(stream, "one", "two")
        deliveries = await collect(stream)
    assert texts(deliveries, "text") == texts(deliveries, "audio") == ["one", "two", ""]
    assert [d.output for d in deliveries if d.final] == ["text", "audio"]
    assert [d.seq for d in deliveries if d.output == "audio"] == [0, 1, 2]
    submits = {s.stage: s for s in bench.ears.submitted + bench.voice.submitted}
    assert {s: submits[s].upstreams for s in submits} == {"ear": (), "mind": ("ear",), "mouth": ("mind",)}
    assert {(s.fence, s.epoch, s.window) for s in submits.values()} == {(7, 3, WINDOW_CHUNKS)}
    assert submits["mouth"].parameters == Speech("joe")
    assert bench.ears.aborted == bench.voice.aborted == []
    assert bench.orchestrator.counters.ended == {Outcome.COMPLETED: 1}


async def test_only_the_stages_that_the_outputs_need_are_opened_and_all_at_admission(bench: Bench) -> None:
    stream = await bench.orchestrator.submit(request("r", "text"))
    await bench.ears.until(lambda: len(bench.ears.submitted) == 2)
    assert [submit.stage for submit in bench.ears.submitted] == ["ear", "mind"]
    await stream.abort()
    other = await bench.orchestrator.submit(request("s", "audio", entry="mouth"))
    await feed(other, "hello")
    assert texts(await collect(other), "audio") == ["hello", ""]
    assert bench.voice.submitted[0].upstreams == ()


async def test_timing_says_where_the_time_went(bench: Bench) -> None:
    async with await bench.orchestrator.submit(request("r", "text")) as stream:
        await feed(stream, "a")
        await collect(stream)
    timing = stream.timing()
    assert set(timing) == {"ear", "mind"}
    assert (timing["mind"].queue_ms, timing["mind"].run_ms, timing["mind"].chunks) == (2.0, 4.0, 2)
    first_ms = timing["ear"].first_ms
    assert first_ms is not None
    assert 0 <= first_ms < 1_000
    assert bench.orchestrator.counters.stages["mind"].started == 1


async def test_a_stage_that_says_nothing_has_no_first_chunk(bench: Bench) -> None:
    async with await bench.orchestrator.submit(request("r", "heard")) as stream:
        await feed(stream)
        await collect(stream)
    assert stream.timing()["ear"].first_ms is None


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        (request("r", "smell"), "smell"),
        (request("r", "text", entry="nose"), "nose"),
        (request("r", "heard", entry="mouth"), "heard"),
        (Request(request_id="r", entry="ear", outputs=(), parameters={}), "outputs"),
        (Request(request_id="r", entry="mouth", outputs=("audio",), parameters={}), "parameters.mouth"),
        (Request(request_id="r", entry="mouth", outputs=("audio",), parameters={"mouth": Activity()}), "parameters.mouth"),
    ],
)
async def test_a_request_that_makes_no_sense_is_refused_by_name(bench: Bench, wrong: Request, field: str) -> None:
    with pytest.raises(RequestFailed, match=field) as refused:
        await bench.orchestrator.submit(wrong)
    assert refused.value.kind is ErrorKind.INVALID
    assert bench.is_empty()


async def test_an_id_is_refused_while_it_runs_and_free_afterwards(bench: Bench) -> None:
    first = await bench.orchestrator.submit(request("same", "heard"))
    with pytest.raises(RequestFailed, match="same"):
        await bench.orchestrator.submit(request("same", "heard"))
    await first.abort()
    async with await bench.orchestrator.submit(request("same", "heard")) as second:
        await feed(second, "x")
        assert texts(await collect(second), "heard") == ["x", ""]


async def test_a_stage_that_is_not_ready_is_named_with_its_note(bench: Bench) -> None:
    bench.statuses_changed.clear()
    bench.voice.become("mouth", StageState.LOADING, "loading kokoro")
    await bench.statuses_changed.wait()
    with pytest.raises(RequestFailed, match="loading kokoro") as refused:
        await bench.orchestrator.submit(request())
    assert refused.value.kind is ErrorKind.OVERLOADED
    assert bench.is_empty()


async def test_sessions_stay_with_their_replica_and_others_go_to_the_least_loaded(bench: Bench, tmp_path: Path) -> None:
    second = FakeWorker(tmp_path / "second", ["mouth"], name="second")
    async with second:
        await bench.connect(second)
        streams = [
            await bench.orchestrator.submit(request(f"r{number}", "audio", entry="mouth", session="s" if number % 2 else ""))
            for number in range(6)
        ]
        await second.until(lambda: len(second.submitted) + len(bench.voice.submitted) == 6)
        homes = [{s.request_id for s in worker.submitted if s.session_id} for worker in (bench.voice, second)]
        assert sorted(map(len, homes)) == [0, 3]
        assert len(bench.voice.submitted) == len(second.submitted) == 3
        for stream in streams:
            await stream.abort()


async def test_offers_what_its_stages_can_make(tmp_path: Path) -> None:
    orchestrator = Orchestrator(CASCADE, ("ear", "mind"), Connectors(0))
    assert [orchestrator.offers(output) for output in ("heard", "text", "audio")] == [True, True, False]
    with pytest.raises(RequestFailed, match="runs ear, mind"):
        await orchestrator.submit(request("r", "audio", entry="mouth"))
