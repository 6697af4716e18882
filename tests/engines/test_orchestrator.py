"""Requests through the orchestrator, on fake workers behind real sockets."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

from engines import request_stream
from engines.connectors.inline import InlineConnector
from engines.graph_counters import Outcome
from engines.messages.framing import FrameError
from engines.messages.to_gateway import ErrorKind, StageState
from engines.messages.to_worker import PUSH_WINDOW
from engines.orchestrator import Orchestrator
from engines.parameters import Activity, Parameters, Speech
from engines.payloads import Payload
from engines.requests import Delivery, Request, RequestFailed, RequestStream
from engines.stage_run import WINDOW_CHUNKS
from engines.worker_link import WorkerLink
from fakes.pipelines import CASCADE
from fakes.worker import EMPTY, FakeStage, FakeWorker

SPEECH: dict[str, Parameters] = {"mouth": Speech("joe")}


class Bench:
    """An orchestrator with fake workers: `ears` runs ear and mind, `voice` runs mouth."""

    def __init__(self, folder: Path) -> None:
        self.ears = FakeWorker(folder / "ears", ["ear", "mind"], name="ears")
        self.voice = FakeWorker(folder / "voice", ["mouth"], name="voice")
        self.statuses_changed = asyncio.Event()
        self.orchestrator = Orchestrator(
            CASCADE, ("ear", "mind", "mouth"), InlineConnector(), on_status=self.statuses_changed.set
        )
        self.served: dict[str, asyncio.Task[None]] = {}

    @asynccontextmanager
    async def running(self) -> AsyncGenerator["Bench"]:
        async with AsyncExitStack() as stack:
            for worker in (self.ears, self.voice):
                await stack.enter_async_context(worker)
                await self.connect(worker)
            yield self
            await self.orchestrator.drain()
        await asyncio.gather(*self.served.values(), return_exceptions=True)

    async def connect(self, worker: FakeWorker) -> WorkerLink:
        link = await WorkerLink.connect(worker.socket, "test")
        self.served[worker.name] = asyncio.create_task(self.orchestrator.serve(link))
        await asyncio.sleep(0)
        return link

    def is_empty(self) -> bool:
        pools = self.orchestrator.pools.values()
        return self.orchestrator.running() == 0 and all(pool.active() == 0 for pool in pools)


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    async with Bench(tmp_path).running() as bench:
        yield bench
    assert bench.is_empty()


def request(name: str = "r", *outputs: str, entry: str = "ear", session: str = "", fence: int = 0, epoch: int = 0) -> Request:
    return Request(
        request_id=name,
        entry=entry,
        outputs=outputs or ("text", "audio"),
        parameters=SPEECH,
        session_id=session,
        fence=fence,
        epoch=epoch,
    )


async def feed(stream: RequestStream, *texts: str) -> None:
    for text in texts:
        await stream.push(Payload(text=text))
    await stream.push(EMPTY, final=True)


async def collect(stream: RequestStream) -> list[Delivery]:
    return [delivery async for delivery in stream]


def texts(deliveries: list[Delivery], output: str) -> list[str]:
    return [delivery.payload.text for delivery in deliveries if delivery.output == output]


async def silent(stage: FakeStage) -> None:
    """Takes nothing and says nothing."""
    await asyncio.Event().wait()


async def test_chunks_cross_the_cascade_and_every_wanted_output_ends_once(bench: Bench) -> None:
    async with await bench.orchestrator.submit(request(fence=7, epoch=3)) as stream:
        await feed(stream, "one", "two")
        deliveries = await collect(stream)
    assert texts(deliveries, "text") == texts(deliveries, "audio") == ["one", "two", ""]
    assert [d.output for d in deliveries if d.final] == ["text", "audio"]
    assert [d.seq for d in deliveries if d.output == "audio"] == [0, 1, 2]
    submits = {s.stage: s for s in bench.ears.submitted + bench.voice.submitted}
    assert {s: submits[s].upstream for s in submits} == {"ear": "", "mind": "ear", "mouth": "mind"}
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
    assert bench.voice.submitted[0].upstream == ""


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


async def test_abort_reaches_all_workers_and_ends_the_iteration(bench: Bench) -> None:
    bench.ears.scripts["mind"] = silent
    stream = await bench.orchestrator.submit(request())
    reading = asyncio.create_task(collect(stream))
    await stream.push(Payload(text="x"))
    await stream.abort()
    await stream.abort()
    assert await reading == []
    assert bench.ears.aborted == bench.voice.aborted == ["r"]
    assert bench.is_empty()
    await stream.push(Payload(text="late"))
    assert bench.orchestrator.counters.ended == {Outcome.ABORTED: 1}


async def test_leaving_the_block_or_being_cancelled_in_it_aborts(bench: Bench) -> None:
    bench.ears.scripts["ear"] = silent

    async def client() -> None:
        async with await bench.orchestrator.submit(request()) as stream:
            await collect(stream)

    task = asyncio.create_task(client())
    await bench.voice.until(lambda: bool(bench.voice.submitted))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert bench.is_empty()
    assert bench.voice.aborted == ["r"]


async def test_an_abort_that_a_worker_ignores_is_bounded(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_stream, "ABORT_LIMIT_S", 0.02)
    bench.voice.ignores_aborts = True
    stream = await bench.orchestrator.submit(request())
    await bench.voice.until(lambda: bool(bench.voice.submitted))
    await stream.abort()
    assert bench.is_empty()
    assert bench.orchestrator.counters.given_up == 1
    bench.voice.stage("r", "mouth").emit_without_credit(Payload(text="late"))
    async with await bench.orchestrator.submit(request("s", "audio", entry="mouth")) as other:
        await feed(other, "x")
        assert texts(await collect(other), "audio") == ["x", ""]


async def test_a_stage_that_fails_fails_the_request_once_and_ends_it_elsewhere(bench: Bench) -> None:
    async def failing(stage: FakeStage) -> None:
        push = await stage.take()
        await stage.emit(push.content.payload)
        stage.fail(ErrorKind.INVALID, "voice: expected joe, got x")
        stage.fail(ErrorKind.ENGINE, "again")

    bench.voice.scripts["mouth"] = failing
    async with await bench.orchestrator.submit(request("r", "audio")) as stream:
        await stream.push(Payload(text="said"))
        assert (await anext(aiter(stream))).payload.text == "said"
        with pytest.raises(RequestFailed, match="voice: expected joe") as failed:
            await collect(stream)
    assert (failed.value.kind, failed.value.stage) == (ErrorKind.INVALID, "mouth")
    assert bench.ears.aborted == ["r"]
    assert bench.voice.aborted == []
    assert bench.orchestrator.counters.ended == {Outcome.FAILED: 1}


async def test_a_lost_worker_answers_everyone_who_waited_and_nobody_else(bench: Bench) -> None:
    bench.voice.scripts["mouth"] = silent
    doomed = [await bench.orchestrator.submit(request(f"r{number}", "audio")) for number in range(20)]
    other = await bench.orchestrator.submit(request("other", "text"))
    waiting = [asyncio.create_task(collect(stream)) for stream in doomed]
    await bench.voice.until(lambda: len(bench.voice.submitted) == 20)
    async with asyncio.timeout(1):
        await bench.voice.crash()
        outcomes = await asyncio.gather(*waiting, return_exceptions=True)
    assert {outcome.kind for outcome in outcomes if isinstance(outcome, RequestFailed)} == {ErrorKind.REPLICA_LOST}
    assert len(outcomes) == 20
    await feed(other, "x")
    assert texts(await collect(other), "text") == ["x", ""]
    with pytest.raises(RequestFailed) as refused:
        await bench.orchestrator.submit(request("r", "audio"))
    assert refused.value.kind is ErrorKind.REPLICA_LOST
    await bench.connect(bench.voice)
    bench.voice.scripts.clear()
    async with await bench.orchestrator.submit(request("r", "audio")) as stream:
        await feed(stream, "back")
        assert texts(await collect(stream), "audio") == ["back", ""]


@pytest.mark.parametrize("raw", [b"\xff\xff\xff\xff", b"\x00\x00\x00\x03abc", b"GET / HTTP/1.1\r\n\r\n"])
async def test_nonsense_from_a_worker_loses_that_worker_only(bench: Bench, raw: bytes) -> None:
    stream = await bench.orchestrator.submit(request("r", "audio"))
    await bench.voice.until(lambda: bool(bench.voice.submitted))
    bench.voice.say(raw)
    with pytest.raises(FrameError):
        await bench.served.pop("voice")
    with pytest.raises(RequestFailed, match="lost"):
        await collect(stream)
    async with await bench.orchestrator.submit(request("s", "text")) as other:
        await feed(other, "x")
        assert texts(await collect(other), "text") == ["x", ""]


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
    for _ in range(5):
        await anext(aiter(slow))
    await bench.ears.until(lambda: stage.emitted == WINDOW_CHUNKS + 5)
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
        await stage.emit(push.content.payload, final=True)

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


async def test_many_requests_at_once_leave_nothing_behind(bench: Bench) -> None:
    async def client(number: int) -> list[str]:
        async with await bench.orchestrator.submit(request(f"r{number}")) as stream:
            feeding = asyncio.create_task(feed(stream, *(f"{number}-{part}" for part in range(40))))
            received: list[str] = []
            async for delivery in stream:
                received += [delivery.payload.text] if delivery.output == "audio" else []
                if number % 3 == 0 and len(received) == 20:
                    break
            await stream.abort()
            await feeding
            return received

    answers = await asyncio.gather(*(client(number) for number in range(200)))
    for number, received in enumerate(answers):
        expected = [f"{number}-{part}" for part in range(40)] + [""]
        assert received == (expected[:20] if number % 3 == 0 else expected)
    assert bench.is_empty()
    assert bench.ears.open == bench.voice.open == {}


async def test_reports_come_back_and_a_lost_worker_owes_none(bench: Bench) -> None:
    link = await WorkerLink.connect(bench.voice.socket, "other")
    serving = asyncio.create_task(bench.orchestrator.serve(link))
    reports = await asyncio.gather(link.report(), link.report())
    assert [report.rss_bytes for report in reports] == [0, 0]
    await bench.voice.crash()
    await serving
    with pytest.raises(ConnectionError):
        await link.report()


async def test_offers_what_its_stages_can_make(tmp_path: Path) -> None:
    orchestrator = Orchestrator(CASCADE, ("ear", "mind"), InlineConnector())
    assert [orchestrator.offers(output) for output in ("heard", "text", "audio")] == [True, True, False]
    with pytest.raises(RequestFailed, match="runs ear, mind"):
        await orchestrator.submit(request("r", "audio", entry="mouth"))


async def test_draining_refuses_the_new_and_ends_the_old(bench: Bench) -> None:
    stream = await bench.orchestrator.submit(request())
    await bench.orchestrator.drain()
    with pytest.raises(RequestFailed, match="shutting down"):
        await collect(stream)
    with pytest.raises(RequestFailed, match="shutting down"):
        await bench.orchestrator.submit(request("new"))
