"""What a stage has put stays until it is granted, aborted, or its connection ends; then nothing of it is left."""

import random
from collections.abc import Sequence
from typing import cast

import numpy as np
import pytest

from engines.connectors.contents import Inline, Key, Shared
from engines.connectors.process import Connectors
from engines.messages.to_gateway import Aborted, Emit, ErrorKind, Failed
from engines.messages.to_worker import Abort
from engines.models import InvalidInput, Produced
from engines.payloads import Array, Payload
from fakes.echoing import EchoingModel
from fakes.gateway import FakeGateway
from fakes.worker_bench import Bench

BLOB = Payload(arrays={"blob": Array.of(np.arange(16 << 10, dtype=np.uint8))}, attributes={"copies": 2})


def kept(bench: Bench) -> list[int]:
    return [seq for _, seq in bench.remote.keys]


async def test_grants_forget_the_oldest_beyond_the_final_chunk(bench: Bench) -> None:
    gateway = await bench.gateway()
    gateway.submit("r", connector="elsewhere")
    gateway.push("r", "a", "b", final=True)
    for _ in range(3):
        await gateway.chunk("r")
    assert kept(bench) == [0, 1, 2]
    assert {scope for scope, _ in bench.remote.keys} == {"gateway#0/r/7/echo"}
    gateway.grant("r", 2)
    await gateway.heard()
    assert kept(bench) == [2]
    gateway.push("r", "too late")
    gateway.grant("r")
    await gateway.heard()
    assert kept(bench) == []
    gateway.send(Abort("r"))
    await gateway.next(Aborted)


async def test_abort_of_what_only_keeps_payloads_is_acknowledged_and_they_are_gone(bench: Bench) -> None:
    gateway = await bench.gateway()
    gateway.submit("r", connector="elsewhere")
    gateway.push("r", "a", final=True)
    for _ in range(2):
        await gateway.chunk("r")
    await gateway.idle()
    assert kept(bench) == [0, 1]
    gateway.send(Abort("r"))
    await gateway.next(Aborted)
    assert kept(bench) == []


async def test_an_id_may_be_used_again_when_only_payloads_are_left_of_it(bench: Bench) -> None:
    gateway = await bench.gateway()
    for texts in (("a", "b"), ("a",)):
        gateway.submit("r", connector="elsewhere")
        gateway.push("r", *texts, final=True)
        assert len(await gateway.chunks("r")) == len(texts) + 1
    assert kept(bench) == [0, 1]


@pytest.mark.parametrize("end", ["failure", "connection"])
async def test_other_ends_leave_nothing_of_it_and_everything_of_others(bench: Bench, end: str) -> None:
    gateway, other = await bench.gateway(), await bench.gateway()
    for who in (gateway, other):
        who.submit("r", connector="elsewhere")
        who.push("r", "a")
        await who.chunk("r")
    assert len(kept(bench)) == 2
    if end == "failure":
        gateway.push("r", "raise")
        await gateway.next(Failed)
    else:
        await gateway.close()
        await bench.model.closes()
    assert bench.remote.keys == [("gateway#1/r/7/echo", 0)]


async def test_arrays_lie_in_shared_memory_both_ways_and_their_room_comes_back(bench: Bench) -> None:
    gateway, caller = await bench.gateway(), Connectors(1 << 20)
    named = caller.named("shared_memory")
    gateway.submit("r", "blobs", connector="shared_memory")
    for round_number in range(100):
        gateway.hand("r", named.put(Key("caller", round_number), BLOB), stage="blobs")
        for _ in range(2):
            chunk = await gateway.chunk("r")
            assert isinstance(chunk.content, Shared)
            read = caller.read(chunk.content)
            assert read is not None
            assert np.array_equal(read.arrays["blob"].numpy(), BLOB.arrays["blob"].numpy())
            del read
        gateway.grant("r", 2, "blobs")
        named.cleanup("caller", before=round_number + 1)
    await gateway.heard()
    assert bench.connectors.holds("gateway#0/r/7/blobs") == 0
    caller.close()


async def test_bytes_that_are_out_hold_back_this_request_and_no_other(bench: Bench) -> None:
    gateway = await bench.gateway()
    for name in ("r", "other"):
        gateway.submit(name, "blobs", window_bytes=40 << 10)
    for _ in range(3):
        gateway.hand("r", Inline(BLOB), stage="blobs")
    gateway.push("other", "x", stage="blobs", final=True)
    assert await gateway.texts("other") == ["x", ""]
    for _ in range(3):
        await gateway.chunk("r")
    await gateway.heard()
    assert not any(isinstance(message, Emit) for message in gateway.unread)
    gateway.grant("r", 1, "blobs")
    assert (await gateway.chunk("r")).seq == 3
    gateway.grant("r", 3, "blobs")
    assert (await gateway.chunk("r")).seq == 4


class Unspeakable(EchoingModel):
    """Gives what no message can carry."""

    def __init__(self, payload: Payload) -> None:
        self._payload = payload

    def run(self, batch: Sequence[tuple[object, Payload]]) -> list[list[Produced] | InvalidInput]:
        return [[Produced(self._payload if payload.text == "unspeakable" else payload)] for _, payload in batch]


UNSPEAKABLE = [
    (Payload("\ud800"), "chunk 1: "),
    (Payload(attributes={"what": 1 << 70}), "chunk 1: "),
    (Payload(attributes={"what": cast("int", np.int64(1))}), "TypeError: an output's payload.attributes['what']: "),
]


@pytest.mark.parametrize(("payload", "where"), UNSPEAKABLE)
async def test_what_cannot_be_told_ends_its_request_and_not_the_engine(bench: Bench, payload: Payload, where: str) -> None:
    bench.models["blobs"] = Unspeakable(payload)
    gateway = await bench.gateway()
    for name in ("bad", "good"):
        gateway.submit(name, "blobs")
    gateway.push("bad", "fine", "unspeakable", stage="blobs", final=True)
    assert (await gateway.chunk("bad")).seq == 0
    failed = await gateway.next(Failed)
    assert (failed.request_id, failed.kind) == ("bad", ErrorKind.ENGINE)
    assert failed.message.startswith(where)
    gateway.push("good", "fine", stage="blobs", final=True)
    assert await gateway.texts("good") == ["fine", ""]


async def test_a_failure_that_cannot_be_told_as_it_is_is_told_as_well_as_it_can(bench: Bench) -> None:
    class Mumbling(EchoingModel):
        def run(self, batch: Sequence[tuple[object, Payload]]) -> list[list[Produced] | InvalidInput]:
            raise RuntimeError("\ud800" + "x" * (64 << 20))

    bench.models["blobs"] = Mumbling()
    gateway = await bench.gateway()
    gateway.submit("r", "blobs")
    gateway.push("r", "a", stage="blobs")
    assert (await gateway.next(Failed)).message.startswith("RuntimeError: ?xxx")


async def one_life(gateway: FakeGateway, draw: random.Random, name: str, stage: str) -> None:
    """Left at a random phase: not fed, fed, in the middle of its chunks, at its end, half granted; then aborted."""
    content = Inline(draw.choice((BLOB, Payload("a"), Payload("raise"))))
    gateway.submit(name, stage, connector=draw.choice(("elsewhere", "shared_memory", "inline")), window=draw.choice((1, 64)))
    if (phase := draw.randrange(5)) > 0:
        gateway.hand(name, *[content] * draw.randint(1, 3), stage=stage, final=phase > 1)
    if phase > 2:
        gateway.grant(name, draw.randint(1, 4), stage)
    if phase > 3:
        await gateway.heard()
    gateway.send(Abort(name))
    await gateway.next(Aborted, lambda aborted: aborted.request_id == name)


async def test_a_thousand_requests_left_at_random_phases_leave_nothing(bench: Bench) -> None:
    bench.slots = 64
    gateway, draw = await bench.gateway(), random.Random(4)
    names = [(f"r{number}", draw.choice(("echo", "blobs"))) for number in range(1000)]
    for start in range(0, len(names), 8):
        for name, stage in names[start : start + 8]:
            await one_life(gateway, draw, name, stage)
        gateway.unread.clear()
    await gateway.idle()
    assert bench.remote.keys == []
    assert sum(bench.connectors.holds(f"gateway#0/{name}/7/{stage}") for name, stage in names) == 0
    while bench.model.closed < bench.model.opened:
        await bench.model.closes()


async def test_an_unknown_connector_is_refused(bench: Bench) -> None:
    gateway = await bench.gateway()
    gateway.submit("r", connector="pigeon")
    failed = await gateway.next(Failed)
    assert failed.kind is ErrorKind.INVALID
    assert failed.message == "connector: expected one of inline, shared_memory, elsewhere, got 'pigeon'"
