"""How requests end: aborts, failures, lost workers, shutdown."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from engines.graph import attempt
from engines.graph.graph_counters import Outcome
from engines.graph.worker_link import WorkerLink
from engines.messages.framing import MAX_FRAME_BYTES, FrameError
from engines.messages.to_gateway import ErrorKind
from engines.parameters import Generation, Message
from engines.payloads import Payload
from engines.requests import RequestFailed
from fakes.cascade import Bench, collect, feed, request, silent, texts
from fakes.worker import FakeStage, inline


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    async with Bench(tmp_path).running() as bench:
        yield bench
    assert bench.is_empty()


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
    monkeypatch.setattr(attempt, "ABORT_LIMIT_S", 0.02)
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
        await stage.emit(inline(push))
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


async def test_draining_refuses_the_new_and_ends_the_old(bench: Bench) -> None:
    stream = await bench.orchestrator.submit(request())
    await bench.orchestrator.drain()
    with pytest.raises(RequestFailed, match="shutting down"):
        await collect(stream)
    with pytest.raises(RequestFailed, match="shutting down"):
        await bench.orchestrator.submit(request("new"))


@pytest.mark.parametrize(
    ("mind", "reason"),
    [
        (Generation(max_tokens=10**23), "can't serialize ints"),
        (Generation(messages=(Message("user", "x" * MAX_FRAME_BYTES),)), f"at most {MAX_FRAME_BYTES} fit into one message"),
        (Generation(messages=(Message("user", "\ud800"),)), "surrogates"),
    ],
)
async def test_parameters_that_cannot_be_sent_leave_nothing_behind(bench: Bench, mind: Generation, reason: str) -> None:
    with pytest.raises(RequestFailed, match=rf"parameters.mind: .*{reason}") as refused:
        await bench.orchestrator.submit(request(mind=mind))
    assert refused.value.kind is ErrorKind.INVALID
    await bench.ears.until(lambda: bench.ears.aborted == ["r"])
    async with await bench.orchestrator.submit(request("next", "text")) as stream:
        await feed(stream, "fine")
        assert texts(await collect(stream), "text") == ["fine", ""]
    assert bench.is_empty()
    assert bench.orchestrator.counters.ended == {Outcome.COMPLETED: 1}
