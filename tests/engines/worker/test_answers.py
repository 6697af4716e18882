"""Models whose answers are not what their types say: the request fails with a sentence, and the worker serves the next one."""

from collections.abc import Callable, Sequence
from typing import Any, cast

import pytest

from engines.connectors.contents import Inline
from engines.messages.to_gateway import ErrorKind, Failed
from engines.models import Produced
from engines.parameters import Denoising
from engines.payloads import Payload
from fakes.echoing import EchoingModel
from fakes.gateway import FakeGateway
from fakes.step_counter import Account, Count, StepCounter
from fakes.worker_bench import Bench

ANSWERS: list[tuple[Any, str]] = [
    (None, "the model's answer: expected a list, got NoneType"),
    ([], "the model's answer: expected one for each of 1 inputs, got 0"),
    ([None], "the model's outputs: expected a list, got NoneType"),
    ([[Payload("x")]], "an output of the model: expected Produced, got Payload"),
    ([[Produced(cast(Payload, None))]], "an output's payload: expected Payload, got NoneType"),
    ([[Produced(Payload(cast(str, None)))]], "an output's payload.text: expected str, got NoneType"),
    ([[Produced(Payload(), pts=cast(float, "0"))]], "an output's pts: expected float | int, got str"),
    ([[Produced(Payload(), units=cast(int, None))]], "an output's units: expected int, got NoneType"),
    ([[Produced(Payload(attributes=cast(Any, None)))]], "an output's payload.attributes: expected dict, got NoneType"),
    (
        [[Produced(Payload(attributes={"a": cast(int, [1])}))]],
        "an output's payload.attributes['a']: expected bool | int | float | str, got list",
    ),
    ([[Produced(Payload(attributes={cast(str, 1): 2}))]], "an output's payload.attributes, a name: expected str, got int"),
]
"""What a model gives for one input, and what its request is told."""
IDS = [str(number) for number in range(len(ANSWERS))]


async def fails_alone(gateway: FakeGateway, stage: str, message: str) -> None:
    """The input `bad` fails its request so, and then `good` is served."""
    order(gateway, stage, "bad")
    failed = await gateway.next(Failed)
    assert (failed.request_id, failed.kind) == ("bad", ErrorKind.ENGINE)
    assert message in failed.message
    order(gateway, stage, "good")
    *_, final = await gateway.chunks("good")
    assert final.final


def order(gateway: FakeGateway, stage: str, name: str) -> None:
    if stage == "steps":
        gateway.submit(name, stage, parameters=Denoising())
    else:
        gateway.submit(name, stage)
    gateway.hand(name, Inline(Payload(name)), stage=stage, final=True)


class OddSteps(StepCounter):
    """Gives `answer` for the text `bad`."""

    answer: Any = None

    def advance(self, jobs: Sequence[Count]) -> list[list[Produced] | Exception]:
        return self.answer if jobs[0].text == "bad" else super().advance(jobs)


@pytest.mark.parametrize(("answer", "message"), ANSWERS, ids=IDS)
async def test_of_a_call_of_steps(bench: Bench, answer: object, message: str) -> None:
    model = bench.steppers["steps"] = OddSteps()
    model.answer = answer
    await fails_alone(await bench.gateway(), "steps", message)


class OddEcho(EchoingModel):
    answer: Any = None
    owed: Any = []
    """Of what `flush` gives, once."""
    key: Any = None

    def run(self, batch: Sequence[tuple[object, Payload]]) -> Any:
        return self.answer if batch[0][1].text == "bad" and self.answer != [] else super().run(batch)

    def flush(self, state: object) -> Any:
        owed, self.owed = self.owed, []
        return owed

    def batch_key(self, state: object, payload: Payload) -> Any:
        return self.key if payload.text == "bad" else super().batch_key(state, payload)


@pytest.mark.parametrize(("answer", "message"), [one for one in ANSWERS if one[0] != []], ids=[at for at in IDS if at != "1"])
async def test_of_a_batch(bench: Bench, answer: object, message: str) -> None:
    model = bench.models["blobs"] = OddEcho()
    model.answer = answer
    await fails_alone(await bench.gateway(), "blobs", message)


async def test_of_what_is_owed_at_the_end_and_of_batch_keys(bench: Bench) -> None:
    model = bench.models["blobs"] = OddEcho()
    model.answer, model.owed = [[]], None
    gateway = await bench.gateway()
    await fails_alone(gateway, "blobs", "the model's outputs: expected a list, got NoneType")
    model.key = []
    order(gateway, "blobs", "bad")
    assert (await gateway.next(Failed)).message == "TypeError: unhashable type: 'list'"
    order(gateway, "blobs", "better")
    assert (await gateway.chunks("better"))[-1].final


class OddJobs(StepCounter):
    """Whose job for the text `bad` says of itself what it likes."""

    def __init__(self, field: str, value: object) -> None:
        super().__init__()
        self._odd = {"key": "", "rows": 1, "calls_left": 2, "step": 0, "steps": 2, "prepares": False} | {field: value}

    def begin(self, state: Account, payload: Payload) -> Any:
        right = super().begin(state, payload)
        return type("OddJob", (), {"text": right.text, **self._odd})() if right.text == "bad" else right


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("rows", float("nan"), "'float' object cannot be interpreted as an integer"),
        ("calls_left", 1.5, "'float' object cannot be interpreted as an integer"),
        ("step", None, "'NoneType' object cannot be interpreted as an integer"),
        ("rows", 0, "the next of 0 rows"),
        ("calls_left", 0, "the job is to go on without a call to come"),
        ("key", [], "unhashable type: 'list'"),
    ],
)
async def test_of_a_job_about_itself(bench: Bench, field: str, value: object, message: str) -> None:
    bench.steppers["steps"] = OddJobs(field, value)
    await fails_alone(await bench.gateway(), "steps", message)


def ended(job: Count) -> None:
    job.step = job.steps


def shrunk(job: Count) -> None:
    job.rows = 0


@pytest.mark.parametrize(("spoil", "message"), [(ended, "without a call to come"), (shrunk, "the next of 0 rows")])
async def test_of_a_job_after_an_update(bench: Bench, spoil: Callable[[Count], None], message: str) -> None:
    gateway = await bench.gateway()
    model = bench.stepper
    model.update = lambda job, payload: spoil(job)
    model.hold()
    gateway.submit("bad", "steps", parameters=Denoising())
    gateway.hand("bad", Inline(Payload("bad")), stage="steps")
    await model.call_begins()
    gateway.hand("bad", Inline(Payload("new", attributes={"update": True})), stage="steps")
    await gateway.heard()
    model.release()
    assert message in (await gateway.next(Failed)).message
    order(gateway, "steps", "good")
    assert (await gateway.chunks("good"))[-1].final
    assert model.abandoned == ["bad"]
