"""A request that finds no free slot waits for one: in order, for a while, and in nobody's way."""

import asyncio

import pytest

from engines.messages.to_gateway import Aborted, Emit, ErrorKind, Failed, Report, Taken
from engines.messages.to_worker import PUSH_WINDOW, Abort, ServiceClass
from engines.parameters import Generation, Message
from fakes.gateway import FakeGateway
from fakes.worker_bench import Bench

LONG_MS = 60_000.0
BATCH, INTERACTIVE, CONTROL = ServiceClass.BATCH, ServiceClass.INTERACTIVE, ServiceClass.CONTROL


@pytest.fixture
async def gateway(bench: Bench) -> FakeGateway:
    """All slots of `echo` and of `writer` are taken, by `holder`."""
    bench.slots = 1
    gateway = await bench.gateway()
    gateway.submit("holder")
    gateway.submit("holder", "writer", parameters=Generation((Message("user", "fine"),)))
    await gateway.heard()
    return gateway


def queued(report: Report, stage: str = "echo") -> int:
    return next(one.queued for one in report.stages if one.stage == stage)


async def refusal(gateway: FakeGateway, name: str) -> str:
    failed = await gateway.next(Failed, lambda failed: failed.request_id == name)
    assert failed.kind is ErrorKind.OVERLOADED
    return failed.message


async def test_it_gets_the_slot_that_becomes_free_with_all_that_was_pushed_meanwhile(bench: Bench, gateway: FakeGateway) -> None:
    gateway.submit("waits", wait_ms=LONG_MS)
    gateway.push("waits", "a", "b", final=True)
    assert queued(await gateway.heard()) == 1
    assert bench.model.batches == []
    assert not any(isinstance(message, Taken) for message in gateway.unread)
    gateway.push("holder", final=True)
    assert await gateway.texts("waits") == ["a", "b", ""]
    assert queued(await gateway.heard()) == 0


async def test_so_it_does_at_a_language_model(gateway: FakeGateway) -> None:
    gateway.submit("waits", "writer", parameters=Generation((Message("user", "one two"),)), wait_ms=LONG_MS)
    gateway.push("waits", stage="writer", final=True)
    gateway.push("holder", stage="writer", final=True)
    assert await gateway.texts("waits") == ["one", "two"]


async def test_who_has_got_a_slot_waits_no_more(gateway: FakeGateway, monkeypatch: pytest.MonkeyPatch) -> None:
    loop, timers = asyncio.get_running_loop(), list[asyncio.TimerHandle]()
    call_later = loop.call_later

    def remembered(delay: float, *what: object) -> asyncio.TimerHandle:
        handle = call_later(delay, *what)  # pyright: ignore[reportArgumentType] (passed through)
        if delay == 77:
            timers.append(handle)
        return handle

    monkeypatch.setattr(loop, "call_later", remembered)
    gateway.submit("waits", wait_ms=77_000)
    await gateway.heard()
    assert [timer.cancelled() for timer in timers] == [False]
    gateway.push("holder", final=True)
    await gateway.chunks("holder")
    assert [timer.cancelled() for timer in timers] == [True]


async def test_it_waits_no_longer_than_it_may(gateway: FakeGateway) -> None:
    gateway.submit("waits", wait_ms=15)
    assert await refusal(gateway, "waits") == "stage 'echo': all 1 slots are taken, and none became free within 15 ms"
    assert queued(await gateway.heard()) == 0
    gateway.submit("waits", wait_ms=LONG_MS)
    gateway.push("waits", "x", final=True)
    gateway.push("holder", final=True)
    assert await gateway.texts("waits") == ["x", ""]


@pytest.mark.parametrize("wait_ms", [0.0, -1.0, float("nan")])
async def test_it_does_not_wait_when_it_may_not(gateway: FakeGateway, wait_ms: float) -> None:
    gateway.submit("hurries", wait_ms=wait_ms)
    assert await refusal(gateway, "hurries") == "stage 'echo': all 1 slots are taken"


async def test_a_wait_that_no_timer_can_count_is_cut(gateway: FakeGateway) -> None:
    gateway.submit("waits", wait_ms=float("inf"))
    gateway.push("waits", "x", final=True)
    gateway.push("holder", final=True)
    assert await gateway.texts("waits") == ["x", ""]


async def test_a_full_line_refuses_at_once(gateway: FakeGateway) -> None:
    for number in range(17):
        gateway.submit(f"r{number}", wait_ms=LONG_MS)
    told = await refusal(gateway, "r16")
    assert told == "stage 'echo': all 1 slots are taken, and 16 requests wait for one already"
    assert queued(await gateway.heard()) == 16


async def test_classes_go_in_order_and_gateways_take_turns(bench: Bench, gateway: FakeGateway) -> None:
    other = await bench.gateway()
    for who, name, service_class in (
        (gateway, "batch", BATCH),
        (gateway, "first", INTERACTIVE),
        (gateway, "second", INTERACTIVE),
        (other, "other", INTERACTIVE),
        (other, "control", CONTROL),
    ):
        who.submit(name, wait_ms=LONG_MS, service_class=service_class)
        who.push(name, name, final=True)
        await who.heard()
    gateway.push("holder", final=True)
    await gateway.texts("batch")
    assert bench.model.batches == [["control"], ["first"], ["other"], ["second"], ["batch"]]


async def test_abort_takes_it_out_of_the_line(bench: Bench, gateway: FakeGateway) -> None:
    for name in ("leaves", "stays"):
        gateway.submit(name, wait_ms=LONG_MS)
        gateway.push(name, name, final=True)
    gateway.send(Abort("leaves"))
    assert (await gateway.next(Aborted)).request_id == "leaves"
    assert queued(await gateway.heard()) == 1
    gateway.push("holder", final=True)
    assert await gateway.texts("stays") == ["stays", ""]
    assert bench.model.batches == [["stays"]]


async def test_the_end_of_its_connection_takes_it_out_of_the_line(bench: Bench, gateway: FakeGateway) -> None:
    other = await bench.gateway()
    other.submit("waits", wait_ms=LONG_MS)
    await other.heard()
    await other.close()
    while queued(await gateway.heard()):
        pass
    gateway.push("holder", final=True)
    await gateway.chunks("holder")
    await gateway.idle()
    assert bench.model.opened == 1


async def test_a_slot_that_a_lost_connection_held_goes_to_who_waits(bench: Bench, gateway: FakeGateway) -> None:
    other = await bench.gateway()
    other.submit("waits", wait_ms=LONG_MS)
    other.push("waits", "x", final=True)
    await other.heard()
    await gateway.close()
    assert await other.texts("waits") == ["x", ""]


@pytest.mark.parametrize("stage", ["echo", "writer"])
async def test_a_worker_may_be_stopped_while_some_wait(
    bench: Bench, gateway: FakeGateway, caplog: pytest.LogCaptureFixture, stage: str
) -> None:
    parameters = Generation((Message("user", "fine"),)) if stage == "writer" else None
    for name in ("waits", "waits too"):
        gateway.submit(name, stage, parameters=parameters, wait_ms=LONG_MS)
    bench.remote.held = {"far"}
    gateway.hand("waits", bench.remote.offer("far"), stage=stage)
    await bench.remote.fetches(1)
    assert bench.running is not None
    bench.running.cancel()
    await asyncio.wait([bench.running])
    assert [record.message for record in caplog.records] == []


async def test_what_breaks_the_contract_while_it_waits_ends_it(gateway: FakeGateway) -> None:
    gateway.submit("greedy", wait_ms=LONG_MS)
    gateway.push("greedy", *["x"] * (PUSH_WINDOW + 1))
    failed = await gateway.next(Failed)
    assert (failed.request_id, failed.kind) == ("greedy", ErrorKind.INVALID)
    assert queued(await gateway.heard()) == 0


async def test_a_slot_is_free_for_the_next_before_the_last_word_of_the_one_before(gateway: FakeGateway) -> None:
    """So a client that sees the end of an answer and asks again is never refused."""
    gateway.push("holder", "x", final=True)
    while not (await gateway.chunk("holder")).final:
        pass
    gateway.submit("next")
    gateway.push("next", "y", final=True)
    assert await gateway.texts("next") == ["y", ""]
    assert not any(isinstance(message, Emit) for message in gateway.unread)
