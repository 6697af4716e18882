"""Connections to a worker: greeting, isolation between gateways, and peers that misbehave."""

import asyncio
import re
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engines.messages.framing import MAX_FRAME_BYTES, frame
from engines.messages.to_gateway import Aborted, ErrorKind, Failed, StageState, StatusChanged, Welcome
from engines.messages.to_worker import PROTOCOL, Abort, Hello, Probe
from engines.parameters import EndOfTurn
from fakes.gateway import payload
from fakes.worker_bench import Bench


async def test_welcome_comes_while_loading_and_status_follows(bench: Bench) -> None:
    bench.loading_may_end.clear()
    gateway = await bench.stranger()
    gateway.send(Hello("gateway"))
    welcome = await gateway.next(Welcome)
    assert {stage.state for stage in welcome.stages} == {StageState.LOADING}
    gateway.submit("early")
    refused = await gateway.next(Failed)
    assert refused.kind is ErrorKind.OVERLOADED
    assert "loading" in refused.message
    bench.loading_may_end.set()
    for _ in welcome.stages:
        changed = await gateway.next(StatusChanged)
        assert changed.status.state is StageState.READY


async def test_a_stage_that_cannot_load_is_failed_and_the_others_serve(bench: Bench) -> None:
    bench.broken = "joined"
    gateway = await bench.gateway()
    gateway.submit("r", "joined")
    failed = await gateway.next(Failed)
    assert failed.kind is ErrorKind.ENGINE
    assert "no weights" in failed.message
    gateway.submit("s")
    gateway.push("s", "fine", final=True)
    assert await gateway.texts("s") == ["fine", ""]


async def test_a_stage_that_could_not_load_is_tried_again_and_then_serves(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engines.worker.stage_host.RELOAD_S", 0.01)
    bench.broken = "joined"
    gateway = await bench.gateway()
    gateway.submit("r", "joined")
    await gateway.next(Failed)
    bench.broken = ""
    await gateway.next(StatusChanged, lambda change: change.status.state is StageState.READY and change.status.stage == "joined")
    gateway.submit("s", "joined")
    gateway.push("s", "fine", stage="joined", final=True)
    assert await gateway.texts("s") == ["fine", ""]


async def test_equal_request_ids_of_two_gateways_never_meet(bench: Bench) -> None:
    one, two = await bench.gateway("one"), await bench.gateway("two")
    for gateway, text in ((one, "1"), (two, "2")):
        gateway.submit("same")
        gateway.push("same", text)
    assert payload(await one.chunk("same")).text == "1"
    assert payload(await two.chunk("same")).text == "2"
    one.send(Abort("same"))
    await one.next(Aborted)
    two.push("same", "still here", final=True)
    assert await two.texts("same") == ["still here", ""]


async def test_the_end_of_a_connection_frees_everything(bench: Bench) -> None:
    bench.slots = 1
    lost, other = await bench.gateway(), await bench.gateway()
    bench.model.hold()
    lost.submit("r")
    lost.push("r", "a")
    await bench.model.step_begins()
    await lost.close()
    bench.model.release()
    await bench.model.closes()
    await other.idle()
    other.submit("r")
    other.push("r", "b", final=True)
    assert await other.texts("r") == ["b", ""]


@pytest.mark.parametrize(
    "garbage",
    [
        frame(b"\xc1 is no msgpack"),
        frame(b"\x81\xa4type\xa5nobody"),
        (MAX_FRAME_BYTES + 1).to_bytes(4, "big"),
        b"GET / HTTP/1.1\r\n\r\n",
    ],
)
async def test_garbage_drops_its_sender_and_nobody_else(bench: Bench, garbage: bytes) -> None:
    good, bad = await bench.gateway(), await bench.gateway()
    bad.writer.write(garbage)
    await bad.hung_up()
    good.submit("r")
    good.push("r", "fine", final=True)
    assert await good.texts("r") == ["fine", ""]


@given(st.binary(max_size=64))
@settings(deadline=None, max_examples=50)
def test_no_first_bytes_end_the_worker(first: bytes) -> None:
    async def check(folder: Path) -> None:
        bench = Bench(folder)
        stranger, good = await bench.stranger(), await bench.gateway()
        stranger.writer.write(first)
        await stranger.close()
        good.submit("r")
        good.push("r", "fine", final=True)
        assert await good.texts("r") == ["fine", ""]
        await bench.stop()

    with TemporaryDirectory() as folder:
        asyncio.run(check(Path(folder)))


async def test_nothing_more_is_read_of_a_gateway_that_does_not_read(bench: Bench) -> None:
    """Else what it is answered would fill the worker's memory. It all comes once it reads."""
    greedy, other = await bench.gateway(), await bench.gateway()
    for number in range(100):
        greedy.submit(str(number), "nowhere" * 30_000)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.5):
            await greedy.writer.drain()
    assert (await other.heard()).stages
    assert [(await greedy.next(Failed)).request_id for _ in range(100)] == [str(number) for number in range(100)]


async def test_a_wrong_protocol_number_or_no_greeting_is_refused(bench: Bench) -> None:
    for first in (Hello("gateway", PROTOCOL + 1), Probe()):
        stranger = await bench.stranger()
        stranger.send(first)
        await stranger.hung_up()
        assert stranger.unread == []


async def test_a_second_hello_or_submit_of_an_open_request_breaks_the_protocol(bench: Bench) -> None:
    twice = await bench.gateway()
    twice.send(Hello("again"))
    await twice.hung_up()
    double = await bench.gateway()
    double.submit("r")
    double.submit("r")
    await double.hung_up()


async def test_what_cannot_be_opened_is_invalid_and_says_why(bench: Bench) -> None:
    gateway = await bench.gateway()
    gateway.submit("r", "nowhere")
    assert (
        await gateway.next(Failed)
    ).message == "stage: expected one of echo, joined, writer, blobs, mixed, paired, steps, got 'nowhere'"
    gateway.submit("r", parameters=EndOfTurn())
    assert (await gateway.next(Failed)).message == "parameters of stage 'echo': expected Activity, got EndOfTurn"
    gateway.submit("r", upstreams=("writer",))
    refused = await gateway.next(Failed)
    assert refused.kind is ErrorKind.INVALID
    assert refused.message.startswith("upstreams:")


async def test_words_for_requests_that_are_gone_are_dropped(bench: Bench) -> None:
    gateway = await bench.gateway()
    gateway.push("gone", "text", final=True)
    gateway.grant("gone")
    gateway.submit("r")
    gateway.push("r", "fine", final=True)
    assert await gateway.texts("r") == ["fine", ""]


async def test_a_chunk_that_fits_no_frame_ends_its_request_and_frees_the_slot(bench: Bench) -> None:
    bench.slots = 2
    gateway = await bench.gateway()
    gateway.submit("bystander")
    gateway.submit("glutton")
    gateway.push("glutton", "small", "huge", "small")
    failed = await gateway.next(Failed)
    assert (failed.request_id, failed.kind) == ("glutton", ErrorKind.ENGINE)
    assert re.fullmatch(rf"chunk 1: FrameTooLarge: \d+ bytes, at most {MAX_FRAME_BYTES} fit into one message", failed.message)
    gateway.submit("next")
    gateway.push("next", "fine", final=True)
    assert await gateway.texts("next") == ["fine", ""]
    gateway.push("bystander", "too", final=True)
    assert await gateway.texts("bystander") == ["too", ""]
    assert bench.model.opened == bench.model.closed == 3


async def test_it_frees_the_slot_when_the_credit_for_it_comes_late(bench: Bench) -> None:
    bench.slots = 1
    gateway = await bench.gateway()
    gateway.submit("glutton", window=1)
    gateway.push("glutton", "many", "huge")
    for granted in (2, 1):
        gateway.grant("glutton", granted)
    assert (await gateway.next(Failed)).request_id == "glutton"
    gateway.submit("next")
    gateway.push("next", "fine", final=True)
    assert await gateway.texts("next") == ["fine", ""]
