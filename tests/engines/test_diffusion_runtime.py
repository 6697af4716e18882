"""DIFFUSION stages in real worker processes, asked through the graph: the schedulers of the deployment, and its counters."""

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from engines.deployment import graph_settings
from engines.messages.to_gateway import ErrorKind, StageReport
from engines.messages.to_worker import ServiceClass
from engines.models.diffusion import DEADLINE_MS, JOB, SHED, STEP, STEPS
from engines.parameters import Denoising
from engines.payloads import Payload, Scalar
from engines.requests import Delivery, Request, RequestFailed
from engines.runtime import Runtime

STEP_MS = 5.0
ABORT_LIMIT_S = 0.5
"""A step and 20 ms are what an idle machine takes; this one may be busy."""


@asynccontextmanager
async def counting(**settings: object) -> AsyncGenerator[Runtime]:
    """One stage, whose steps take 5 ms and a fifth of that for each row."""
    options = {"step_ms": STEP_MS, "row_ms": STEP_MS / 5}
    stage = {"model": "fakes.step_counter:StepCounter", "directory": ".", "options": options, **settings}
    sections: dict[str, object] = {
        "pipeline": "fakes.step_counter:COUNTERS",
        "workers": {"one": {"stages": ["counter"]}},
        "stages": {"counter": stage},
    }
    runtime = Runtime(graph_settings(Path("d.yaml"), sections))
    async with runtime.running():
        await runtime.ready.wait()
        yield runtime


@pytest.fixture(autouse=True)
def _fakes_for_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", "tests")


def request(
    name: str,
    *,
    seed: int = 0,
    deadline_ms: float | None = None,
    service_class: ServiceClass = ServiceClass.INTERACTIVE,
) -> Request:
    return Request(
        request_id=name,
        entry="counter",
        outputs=("sums",),
        parameters={"counter": Denoising(seed=seed)},
        deadline_ms=deadline_ms,
        service_class=service_class,
    )


async def answer(runtime: Runtime, asked: Request, **attributes: Scalar) -> list[Delivery]:
    """Of a one-shot request."""
    async with await runtime.submit(asked) as stream:
        await stream.push(Payload("x", attributes=attributes), final=True)
        return [delivery async for delivery in stream]


async def counters(runtime: Runtime) -> StageReport:
    return (await runtime.reports())["one"].stages[0]


@pytest.mark.parametrize("policy", ["steps", "waves"])
async def test_requests_share_calls_and_get_what_each_gets_alone(policy: str) -> None:
    async with counting(schedule={"policy": policy}) as runtime:
        alone = [await answer(runtime, request(f"a{seed}", seed=seed), steps=6) for seed in range(4)]
        before = await counters(runtime)
        together = await asyncio.gather(*(answer(runtime, request(f"t{seed}", seed=seed), steps=6) for seed in range(4)))
        after = await counters(runtime)
    for one, other in zip(alone, together, strict=True):
        assert one[0].payload.arrays["sums"].data == other[0].payload.arrays["sums"].data
        assert other[0].payload.attributes == {JOB: 0, STEP: 6, STEPS: 6}
        assert [delivery.final for delivery in other] == [False, True]
    assert (before.steps, before.rows, after.rows - before.rows, after.shed) == (24, 24, 24, 0)
    assert after.steps - before.steps <= 18


async def test_an_incompatible_request_holds_up_nobody() -> None:
    """`a`, `B` of another size, `a`, `a`, four steps each, four rows at most: 8 rounds, not 12."""
    async with counting(batch={"max": 4}) as runtime:
        await answer(runtime, request("cost"), steps=2)
        before = await counters(runtime)
        gate = answer(runtime, request("gate"), key="gate", steps=4)
        await asyncio.gather(gate, *(answer(runtime, request(f"r{at}"), key=key, steps=4) for at, key in enumerate("aBaa")))
        after = await counters(runtime)
    assert after.steps - before.steps <= 4 + 8 + 2  # the gate's, theirs, and two in which not all of them were there yet


async def test_what_cannot_be_done_in_time_is_refused_and_the_next_is_served() -> None:
    async with counting() as runtime:
        await answer(runtime, request("teach"), steps=10)
        began = time.monotonic()
        with pytest.raises(RequestFailed) as refused:
            await answer(runtime, request("late", deadline_ms=100), steps=1000)
        assert time.monotonic() - began < 1
        assert refused.value.kind is ErrorKind.OVERLOADED
        assert "1000" in refused.value.message
        assert len(await answer(runtime, request("next", deadline_ms=10_000), steps=2)) == 2
        report = await counters(runtime)
    assert (report.shed, report.active, report.queued) == (1, 0, 0)


async def test_a_request_that_goes_on_is_told_what_was_shed() -> None:
    async with counting() as runtime:
        await answer(runtime, request("teach"), steps=10)
        async with await runtime.submit(request("r", service_class=ServiceClass.CONTROL)) as stream:
            await stream.push(Payload("late", attributes={"steps": 1000, DEADLINE_MS: 50}))
            await stream.push(Payload("fine", attributes={"steps": 2}), final=True)
            shed, done, final = [delivery async for delivery in stream]
    assert "1000" in str(shed.payload.attributes[SHED])
    assert (shed.payload.attributes[JOB], done.payload.attributes[JOB], final.final) == (0, 1, True)


async def test_after_an_abort_no_step_is_done() -> None:
    async with counting() as runtime:
        async with await runtime.submit(request("r")) as stream:
            await stream.push(Payload("x", attributes={"steps": 5000, "previews": True}))
            await anext(aiter(stream))
            began = time.monotonic()
            await stream.abort()
            took_s = time.monotonic() - began
        stopped = await counters(runtime)
        await answer(runtime, request("next"), steps=3)
        after = await counters(runtime)
    assert took_s < ABORT_LIMIT_S
    assert stopped.active == 0
    assert after.steps - stopped.steps == 3
