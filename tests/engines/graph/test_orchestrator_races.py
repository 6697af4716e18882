"""Two things at once: reads and aborts, equal ids one after the other, what one caller sends and what another waits for."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from engines.messages.to_gateway import ErrorKind
from engines.payloads import Payload
from engines.requests import RequestFailed
from fakes.cascade import Bench, collect, feed, request, texts
from fakes.remote_payloads import RemotePayloads
from fakes.worker import FakeStage, FakeWorker


@pytest.fixture
async def elsewhere() -> RemotePayloads:
    return RemotePayloads()


@pytest.fixture
async def bench(tmp_path: Path, elsewhere: RemotePayloads) -> AsyncIterator[Bench]:
    """Its workers' payloads must be fetched."""
    async with Bench(tmp_path, elsewhere=elsewhere).running() as bench:
        yield bench


@pytest.fixture
async def second_voice(bench: Bench) -> AsyncIterator[FakeWorker]:
    async with bench.another("voice-2", ["mouth"]) as worker:
        await bench.connect(worker)
        yield worker


async def say(stage: FakeStage) -> None:
    for text in ("one", "two"):
        await stage.emit(Payload(text))
    await stage.emit(final=True)


async def test_a_read_that_is_cancelled_in_mid_fetch_loses_no_delivery(bench: Bench, elsewhere: RemotePayloads) -> None:
    bench.voice.scripts["mouth"] = say
    elsewhere.held.add("one")
    async with await bench.orchestrator.submit(request("r", "audio", entry="mouth")) as stream:
        reading = asyncio.create_task(collect(stream))
        await elsewhere.fetches(1)
        reading.cancel()
        await elsewhere.fetches(0)
        await elsewhere.release("one")
        assert texts(await collect(stream), "audio") == ["one", "two", ""]


async def test_an_abort_in_mid_fetch_ends_the_iteration(bench: Bench, elsewhere: RemotePayloads) -> None:
    bench.voice.scripts["mouth"] = say
    elsewhere.held.add("one")
    stream = await bench.orchestrator.submit(request("r", "audio", entry="mouth"))
    reading = asyncio.create_task(collect(stream))
    await elsewhere.fetches(1)
    await stream.abort()
    await elsewhere.release("one")
    assert await reading == []
    assert bench.is_empty()


async def test_a_second_try_in_mid_fetch_gives_what_the_second_says(
    bench: Bench, second_voice: FakeWorker, elsewhere: RemotePayloads
) -> None:
    async def say_and_wait(stage: FakeStage) -> None:
        await stage.emit(Payload("first try"))
        await asyncio.Event().wait()

    bench.voice.scripts["mouth"] = say_and_wait
    second_voice.scripts["mouth"] = say
    elsewhere.held.add("first try")
    async with await bench.orchestrator.submit(request("r", "audio", entry="mouth")) as stream:
        reading = asyncio.create_task(collect(stream))
        await elsewhere.fetches(1)
        await bench.voice.crash()
        await second_voice.until(lambda: bool(second_voice.submitted))
        await elsewhere.release("first try")
        assert texts(await reading, "audio") == ["one", "two", ""]


async def test_a_payload_that_is_lost_ends_the_request_everywhere(bench: Bench, elsewhere: RemotePayloads) -> None:
    async def endless(stage: FakeStage) -> None:
        await stage.emit(Payload("lost"))
        elsewhere.kept.clear()
        await asyncio.Event().wait()

    bench.voice.scripts["mouth"] = endless
    stream = await bench.orchestrator.submit(request("r", "audio", entry="mouth"))
    with pytest.raises(RequestFailed, match="payload 0 of voice") as lost:
        await anext(aiter(stream))
    assert lost.value.kind is ErrorKind.REPLICA_LOST
    await bench.voice.until(lambda: bench.voice.aborted == ["r"])
    await bench.settled()
    assert bench.is_empty()


async def test_what_cannot_be_sent_fails_its_own_request_and_is_not_kept_for_a_second_try(
    bench: Bench, second_voice: FakeWorker
) -> None:
    bad = await bench.orchestrator.submit(request("bad", "audio", entry="mouth"))
    good = await bench.orchestrator.submit(request("good", "audio", entry="mouth"))
    with pytest.raises(RequestFailed, match=r"input: .*surrogates") as refused:
        await bad.push(Payload("\ud800"))
    assert refused.value.kind is ErrorKind.INVALID
    await bad.push(Payload("more"))  # it is over
    for worker in (bench.voice, second_voice):
        worker.scripts["mouth"] = _mute
    lost = bench.voice if bench.voice.find("good", "mouth") else second_voice
    await lost.crash()
    (bench.voice if lost is second_voice else second_voice).scripts.clear()
    await feed(good, "fine")
    assert texts(await collect(good), "audio") == ["fine", ""]
    for stream in (bad, good):
        await stream.abort()
    assert bench.is_empty()


async def _mute(stage: FakeStage) -> None:
    await asyncio.Event().wait()


async def test_an_id_may_come_again_while_its_first_request_is_not_read(bench: Bench) -> None:
    bench.voice.scripts["mouth"] = say
    first = await bench.orchestrator.submit(request("r", "audio", entry="mouth"))
    assert (await anext(aiter(first))).payload.text == "one"
    await bench.settled()
    second = await bench.orchestrator.submit(request("r", "audio", entry="mouth"))
    assert first.attempts[0].wire_id != second.attempts[0].wire_id
    assert texts(await collect(second), "audio") == ["one", "two", ""]
    assert texts(await collect(first), "audio") == ["two", ""]
    for stream in (first, second):
        await stream.abort()


async def test_an_id_may_come_again_while_a_worker_owes_the_acknowledgement_of_its_abort(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engines.graph.attempt.ABORT_LIMIT_S", 0.01)
    bench.voice.scripts["mouth"] = _mute
    bench.voice.ignores_aborts = True
    wire_ids: set[str] = set()
    for _ in range(3):
        stream = await bench.orchestrator.submit(request("r", "audio", entry="mouth"))
        wire_ids.add(stream.attempts[0].wire_id)
        await stream.abort()
    assert len(wire_ids) == 3
    bench.voice.ignores_aborts = False
    bench.voice.scripts["mouth"] = say
    async with await bench.orchestrator.submit(request("r", "audio", entry="mouth")) as stream:
        assert texts(await collect(stream), "audio") == ["one", "two", ""]
    assert bench.is_empty()


async def test_a_chunk_with_another_fence_or_epoch_is_nobodys(bench: Bench) -> None:
    async def stale(stage: FakeStage) -> None:
        stage.emit_without_credit(Payload("stale"), fence=6)
        stage.emit_without_credit(Payload("stale"), epoch=2)
        stage.emitted = 0
        await say(stage)

    bench.voice.scripts["mouth"] = stale
    async with await bench.orchestrator.submit(request("r", "audio", entry="mouth", fence=7, epoch=3)) as stream:
        assert texts(await collect(stream), "audio") == ["one", "two", ""]


async def test_a_full_home_keeps_its_session_and_lets_one_request_go_elsewhere(bench: Bench, second_voice: FakeWorker) -> None:
    for worker in (bench.voice, second_voice):
        worker.scripts["mouth"] = _mute
    mine = [await bench.orchestrator.submit(request(f"r{n}", "audio", entry="mouth", session="s")) for n in range(17)]
    await second_voice.until(lambda: len(second_voice.submitted) == 1)
    assert len(bench.voice.submitted) == 16  # all its slots
    await mine[0].abort()
    again = await bench.orchestrator.submit(request("again", "audio", entry="mouth", session="s"))
    await bench.voice.until(lambda: len(bench.voice.submitted) == 17)
    for stream in (*mine, again):
        await stream.abort()


async def test_whoever_waits_for_a_worker_to_read_goes_on_when_the_request_is_aborted(bench: Bench) -> None:
    bench.voice.stop_reading()
    stream = await bench.orchestrator.submit(request("r", "audio", entry="mouth"))
    link = next(iter(stream.attempts[0].stages.values())).link
    pushing: asyncio.Task[None] | None = None
    while link.has_room:
        pushing = asyncio.create_task(stream.push(Payload("x" * 100_000)))
        await asyncio.sleep(0)
    waiting = asyncio.create_task(stream.push(Payload("one more")))
    await asyncio.sleep(0)
    assert not waiting.done()
    aborting = asyncio.create_task(stream.abort())
    await waiting
    bench.voice.read_on()
    await aborting
    assert pushing is not None
    await pushing
