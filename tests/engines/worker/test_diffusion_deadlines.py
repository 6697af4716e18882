"""Deadlines of jobs, and what becomes of those that are not done: what a gateway is told, and when they are freed."""

import time

import pytest

from engines.messages.to_gateway import Aborted, ErrorKind, Failed
from engines.messages.to_worker import Abort
from engines.models.diffusion import DEADLINE_MS, JOB, SHED, STEP, STEPS
from engines.payloads import Scalar
from fakes.ordering import counted, ends, order, push, push_with, submit, told
from fakes.worker_bench import Bench


async def test_a_one_shot_request_that_cannot_be_done_in_time_is_refused_at_once(bench: Bench) -> None:
    gateway = await bench.gateway()
    bench.first_come.refuses["late"] = "too late by 7 ms"
    order(gateway, "r", key="late")
    failed = await gateway.next(Failed)
    assert (failed.kind, failed.message) == (ErrorKind.OVERLOADED, "too late by 7 ms")
    order(gateway, "next", steps=1)
    await ends(gateway, "next")
    assert (bench.stepper.calls, bench.stepper.abandoned, bench.stepper.closed) == ([["next"]], ["r"], 2)
    assert (await counted(gateway)).shed == 1


async def test_who_is_shed_is_told_while_the_next_call_runs(bench: Bench) -> None:
    gateway = await bench.gateway()
    bench.stepper.hold()
    order(gateway, "long", steps=2)
    await bench.stepper.call_begins()
    bench.first_come.sheds["late"] = "no time"
    order(gateway, "late", key="late")
    await gateway.heard()
    bench.stepper.let()
    assert await bench.stepper.call_begins() == ["long"]
    assert (await gateway.next(Failed)).message == "no time"
    assert bench.stepper.abandoned == []
    bench.stepper.release()
    await ends(gateway, "long")
    await gateway.idle()
    assert (bench.stepper.abandoned, bench.stepper.closed) == (["late"], 2)


async def test_what_is_shed_of_a_request_that_goes_on_is_a_chunk(bench: Bench) -> None:
    gateway = await bench.gateway()
    bench.stepper.hold()
    submit(gateway, "r")
    push(gateway, "r", "first", steps=9, key="slow")
    await bench.stepper.call_begins()
    bench.first_come.sheds["slow"] = "3 calls are left, and time for 1"
    push(gateway, "r", "second", steps=1)
    await gateway.heard()
    bench.stepper.release()
    assert await told(gateway, "r") == {SHED: "3 calls are left, and time for 1", JOB: 0, STEP: 1, STEPS: 9}
    assert await told(gateway, "r") == {JOB: 1, STEP: 1, STEPS: 1}
    gateway.push("r", stage="steps", final=True)
    assert (await gateway.chunk("r")).final
    assert bench.stepper.abandoned == ["first"]


async def test_what_was_shed_is_freed_before_its_request_is_closed(bench: Bench) -> None:
    gateway = await bench.gateway()
    bench.stepper.hold()
    order(gateway, "long", steps=2)
    await bench.stepper.call_begins()
    bench.first_come.sheds["slow"] = "no time"
    submit(gateway, "r")
    push(gateway, "r", key="slow")
    await gateway.heard()
    bench.stepper.let()
    assert await bench.stepper.call_begins() == ["long"]
    assert SHED in await told(gateway, "r")
    gateway.send(Abort("r"))
    await gateway.next(Aborted)
    bench.stepper.release()
    await ends(gateway, "long")
    assert (bench.stepper.abandoned, bench.stepper.abandoned_too_late, bench.stepper.closed) == (["r"], [], 2)


async def test_deadlines_are_the_inputs_own_or_the_requests_and_count_from_when_it_came(bench: Bench) -> None:
    gateway = await bench.gateway()
    bench.stepper.hold()
    submit(gateway, "gate")
    push(gateway, "gate")
    await bench.stepper.call_begins()
    before = time.monotonic()
    for name in ("own", "request", "none"):
        submit(gateway, name, deadline_ms=None if name == "none" else 5000.0)
        push_with(gateway, name, {DEADLINE_MS: 2000} if name == "own" else {})
    await gateway.heard()
    after = time.monotonic()
    bench.stepper.let()
    await bench.stepper.call_begins()
    deadlines = [member.deadline for member in bench.first_come.members[1:]]
    assert deadlines[2] is None
    for deadline, allowed_s in zip(deadlines[:2], (2.0, 5.0), strict=True):
        assert deadline is not None
        assert before + allowed_s <= deadline <= after + allowed_s
    assert {member.service_class for member in bench.first_come.members} == {"interactive"}


async def test_what_is_late_before_it_could_begin_is_never_begun(bench: Bench) -> None:
    gateway = await bench.gateway()
    bench.stepper.hold()
    submit(gateway, "r")
    push(gateway, "r", "first", steps=1)
    await bench.stepper.call_begins()
    push_with(gateway, "r", {DEADLINE_MS: 1000}, "second")
    push(gateway, "r", "third", steps=1)
    await gateway.heard()
    bench.ahead_s = 2.0
    bench.stepper.release()
    assert (await told(gateway, "r"))[JOB] == 0
    shed = await told(gateway, "r")
    assert "its deadline had passed" in str(shed[SHED])
    assert shed[JOB] == 1
    assert (await told(gateway, "r"))[JOB] == 2
    assert bench.stepper.calls == [["first"], ["third"]]


@pytest.mark.parametrize("deadline_ms", [-1, float("nan"), float("inf"), "soon", True])
async def test_a_deadline_that_is_none_fails_its_request(bench: Bench, deadline_ms: Scalar) -> None:
    gateway = await bench.gateway()
    submit(gateway, "r")
    push_with(gateway, "r", {DEADLINE_MS: deadline_ms})
    failed = await gateway.next(Failed)
    assert failed.kind is ErrorKind.INVALID
    assert failed.message.startswith("deadline_ms: expected a finite number of milliseconds from 0 on, got ")
