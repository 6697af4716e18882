"""A model that hangs: who is told, and who is left alone."""

import time

import pytest

from engines.messages.to_gateway import Aborted, ErrorKind, Failed
from engines.messages.to_worker import Abort
from engines.parameters import Generation, Message
from fakes.gateway import FakeGateway
from fakes.worker_bench import Bench

HUNG = "the model hangs: nothing has come from it for 0.05 s"
LONG_MS = 60_000.0


async def test_everybody_is_told_of_a_model_that_hangs_and_the_worker_ends(bench: Bench) -> None:
    bench.hang_limit_s, bench.slots = 0.05, 2
    one, two = await bench.gateway(), await bench.gateway()
    bench.model.hold()
    one.submit("stuck")
    one.push("stuck", "x")
    await bench.model.step_begins()
    one.submit("idle")
    two.submit("waits", wait_ms=LONG_MS)
    assert {(await one.next(Failed)).request_id for _ in range(2)} == {"stuck", "idle"}
    told = await two.next(Failed)
    assert (told.request_id, told.kind, told.message) == ("waits", ErrorKind.ENGINE, HUNG)
    assert await bench.model_died()


async def test_who_waits_for_a_language_model_that_hangs_is_told_too(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    bench.slots, bench.hang_limit_s = 1, 0.05
    gateway = await bench.gateway()
    for name, word in (("stuck", "wait"), ("waits", "fine")):
        gateway.submit(name, "writer", parameters=Generation((Message("user", word),)), wait_ms=LONG_MS)
        gateway.push(name, stage="writer", final=True)
    assert {(await gateway.next(Failed)).request_id for _ in range(2)} == {"stuck", "waits"}
    assert await bench.model_died()
    assert bench.text_model.conversations == [[Message("user", "wait")]]
    assert not any(record.name == "asyncio" for record in caplog.records)


async def test_an_abort_of_who_hangs_is_answered_when_the_model_is_given_up(bench: Bench) -> None:
    bench.hang_limit_s = 0.05
    gateway = await bench.gateway()
    bench.model.hold()
    gateway.submit("stuck")
    gateway.push("stuck", "x")
    await bench.model.step_begins()
    gateway.send(Abort("stuck"))
    await gateway.next(Aborted)
    assert await bench.model_died()


async def test_a_model_that_works_for_long_in_many_calls_does_not_hang(bench: Bench) -> None:
    bench.hang_limit_s = 0.05
    gateway = await bench.gateway()
    gateway.submit("r")
    started = time.monotonic()
    while time.monotonic() - started < 3 * bench.hang_limit_s:
        gateway.push("r", "x")
        await gateway.chunk("r")
        gateway.grant("r")
    gateway.push("r", final=True)
    assert (await gateway.chunk("r")).final


@pytest.mark.parametrize("stage", ["echo", "mixed"])
async def test_aborts_are_acknowledged_while_a_call_hangs(bench: Bench, stage: str) -> None:
    """200 of the same stage, some of which have an open state, and of another; p99 of the time to the acknowledgement."""
    bench.slots = 300
    gateway = await bench.gateway()
    names = [f"r{number}" for number in range(200)]
    for name in names:
        gateway.submit(name, stage, upstreams=("echo",) if stage == "mixed" else ())
    gateway.push("r0", "warm", stage=stage, source="echo" if stage == "mixed" else "")
    await gateway.chunk("r0")
    bench.model.hold()
    gateway.submit("stuck")
    gateway.push("stuck", "x")
    while "x" not in await bench.model.step_begins():
        pass
    took_ms = sorted([await abort_ms(gateway, name) for name in names])
    assert took_ms[197] <= 100
    bench.model.release()
    gateway.push("stuck", final=True)
    assert await gateway.texts("stuck") == ["x", ""]
    await gateway.idle()
    assert bench.model.opened == bench.model.closed


async def abort_ms(gateway: FakeGateway, name: str) -> float:
    started = time.perf_counter()
    gateway.send(Abort(name))
    assert (await gateway.next(Aborted)).request_id == name
    return (time.perf_counter() - started) * 1000


async def test_a_failure_is_told_while_a_call_of_others_hangs(bench: Bench) -> None:
    gateway = await bench.gateway()
    bench.model.hold()
    gateway.submit("stuck")
    gateway.push("stuck", "x")
    await bench.model.step_begins()
    gateway.submit("bad")
    gateway.push("bad", final=True)
    gateway.push("bad", "after the final one")
    assert (await gateway.next(Failed)).request_id == "bad"
