"""A replica that dies under a request: a second try elsewhere while nobody has seen anything of the first, else a failure."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from engines.graph import request_stream
from engines.messages.to_gateway import ErrorKind
from engines.payloads import Payload
from engines.requests import RequestFailed
from fakes.cascade import Bench, collect, feed, request, texts
from fakes.worker import FakeStage, FakeWorker


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    async with Bench(tmp_path).running() as bench:
        yield bench


@pytest.fixture
async def second_voice(bench: Bench) -> AsyncIterator[FakeWorker]:
    async with FakeWorker(bench.folder / "voice-2", ["mouth"], name="voice-2") as worker:
        await bench.connect(worker)
        yield worker


async def mute(stage: FakeStage) -> None:
    """Takes everything and says nothing."""
    while True:
        await stage.take()


async def test_a_request_of_which_nothing_was_read_goes_on_elsewhere_with_all_its_input(
    bench: Bench, second_voice: FakeWorker
) -> None:
    bench.voice.scripts["mouth"] = second_voice.scripts["mouth"] = mute
    async with await bench.orchestrator.submit(request("r", "audio", entry="mouth")) as stream:
        await stream.push(Payload("one"))
        first, other = bench.voice, second_voice
        other.scripts.clear()
        await first.until(lambda: bool(first.find("r", "mouth")))
        await first.crash()
        await feed(stream, "two", "three")
        assert texts(await collect(stream), "audio") == ["one", "two", "three", ""]
    assert [submit.request_id for submit in other.submitted] == ["r"]
    assert bench.is_empty()


async def test_stages_that_survive_begin_anew_and_hear_an_abort_of_the_first_try(bench: Bench, second_voice: FakeWorker) -> None:
    bench.voice.scripts["mouth"] = second_voice.scripts["mouth"] = mute
    async with await bench.orchestrator.submit(request("r", "audio")) as stream:
        await feed(stream, "hello")
        first, other = bench.voice, second_voice
        other.scripts.clear()
        await first.until(lambda: bool(first.find("r", "mouth")))
        await first.crash()
        assert texts(await collect(stream), "audio") == ["hello", ""]
    assert bench.ears.aborted[:1] == ["r"]
    assert [submit.request_id for submit in bench.ears.submitted] == ["r"] * 4
    assert bench.is_empty()


async def test_what_has_been_read_is_not_said_twice(bench: Bench, second_voice: FakeWorker) -> None:
    async with await bench.orchestrator.submit(request("r", "audio", entry="mouth")) as stream:
        await stream.push(Payload("one"))
        assert (await anext(aiter(stream))).payload.text == "one"
        first, other = bench.voice, second_voice
        await first.crash()
        with pytest.raises(RequestFailed) as failed:
            await anext(aiter(stream))
    assert failed.value.kind is ErrorKind.REPLICA_LOST
    assert not other.submitted
    assert bench.is_empty()


async def test_there_is_one_second_try_and_no_third(bench: Bench, second_voice: FakeWorker) -> None:
    async with (
        FakeWorker(bench.folder / "voice-3", ["mouth"], name="voice-3") as third,
        await bench.orchestrator.submit(request("r", "audio", entry="mouth")) as stream,
    ):
        await bench.connect(third)
        for worker in (bench.voice, second_voice):
            worker.scripts["mouth"] = mute
            await worker.until(lambda worker=worker: bool(worker.open))
            await worker.crash()
        with pytest.raises(RequestFailed) as failed:
            await anext(aiter(stream))
    assert failed.value.kind is ErrorKind.REPLICA_LOST
    assert not third.submitted


async def test_without_another_replica_it_fails_at_once(bench: Bench) -> None:
    bench.voice.scripts["mouth"] = mute
    async with await bench.orchestrator.submit(request("r", "audio", entry="mouth")) as stream:
        await bench.voice.until(lambda: bool(bench.voice.open))
        await bench.voice.crash()
        with pytest.raises(RequestFailed, match="worker 'voice' was lost, and no other replica takes over") as failed:
            await anext(aiter(stream))
    assert failed.value.kind is ErrorKind.REPLICA_LOST
    assert bench.is_empty()


@pytest.mark.parametrize("limit", ["KEPT_INPUTS", "KEPT_BYTES"])
async def test_more_input_than_is_kept_cannot_be_said_again(
    bench: Bench, second_voice: FakeWorker, monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    monkeypatch.setattr(request_stream, limit, 2)
    bench.voice.scripts["mouth"] = second_voice.scripts["mouth"] = mute
    async with await bench.orchestrator.submit(request("r", "audio", entry="mouth")) as stream:
        for text in ("a", "b", "c"):
            await stream.push(Payload(text))
        first, other = bench.voice, second_voice
        await first.until(lambda: bool(first.open))
        await first.crash()
        with pytest.raises(RequestFailed) as failed:
            await anext(aiter(stream))
    assert failed.value.kind is ErrorKind.REPLICA_LOST
    assert not other.submitted


async def test_a_feeder_that_waits_for_room_goes_on_at_the_new_replica(bench: Bench, second_voice: FakeWorker) -> None:
    async def stand_still(stage: FakeStage) -> None:
        await asyncio.Event().wait()

    bench.voice.scripts["mouth"] = second_voice.scripts["mouth"] = stand_still
    async with await bench.orchestrator.submit(request("r", "audio", entry="mouth")) as stream, asyncio.TaskGroup() as group:
        group.create_task(feed(stream, *(str(number) for number in range(100))))
        first, other = bench.voice, second_voice
        await first.until(lambda: first.untaken("r", "mouth") == 32)
        other.scripts.clear()
        await first.crash()
        assert texts(await collect(stream), "audio") == [*(str(number) for number in range(100)), ""]
    assert bench.is_empty()
