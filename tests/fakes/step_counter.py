"""A right DIFFUSION model: each job adds up noise of a counter, step by step. For worker processes and the conformance suite."""

import time
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import numpy as np
from numpy.typing import NDArray

from engines.conformance.samples import GenerationSamples
from engines.models import InvalidInput, Produced
from engines.models.diffusion import PREVIEW
from engines.models.snapshots import Snapshot, saved
from engines.parameters import Denoising, Parameters
from engines.payloads import Array, Payload, Scalar
from engines.pipeline import ExecutionType, Output, Pipeline, Stage

KIND = "step_counter 1"
WIDTH = 4
STEPS = 4

COUNTERS = Pipeline(
    name="fakes.step_counter:COUNTERS",
    stages=(Stage("counter", ExecutionType.DIFFUSION, emits="sums", parameters=Denoising),),
    edges=(),
    outputs=(Output("sums", "counter"),),
)


@dataclass(slots=True)
class Account:
    """What is kept for a request: its jobs so far, and the sum of their results."""

    seed: int
    total: NDArray[np.float32]
    jobs: int = 0


@dataclass(slots=True, eq=False)
class Count:
    """A job. `text` comes out with the sum, and is what an update changes."""

    account: Account
    number: int
    text: str
    key: Hashable
    rows: int
    steps: int
    previews: bool
    sums: NDArray[np.float32]
    step: int = 0
    preparations: int = 0

    @property
    def prepares(self) -> bool:
        return self.step < self.preparations

    @property
    def calls_left(self) -> int:
        return self.steps - self.step


class StepCounter:
    """Inputs: a text, the array `start` float32 [4] if there is one, and the attributes `steps` (4), `rows` (1), `key` ("") and
    `previews` (False: true shows the sum after each step), and `preparations` (0), which are its first steps. Texts: `refuse` is
    no job; `raise` raises in its first call, `invalid` fails there; `hang` never comes back from it.

    Options: a call takes `step_ms` and `row_ms` for each row.
    """

    units = "sums"

    def __init__(self, step_ms: float = 0.0, row_ms: float = 0.0) -> None:
        self._step_ms = step_ms
        self._row_ms = row_ms

    @classmethod
    def load(cls, directory: Path, options: dict[str, object]) -> "StepCounter":
        return cls(float(str(options.get("step_ms", 0))), float(str(options.get("row_ms", 0))))

    def warm_up(self) -> None: ...

    def open(self, parameters: Parameters) -> Account:
        denoising = cast(Denoising, parameters)
        if denoising.sampler == "edm":
            raise InvalidInput("sampler: expected 'flow', got 'edm'")
        return Account(denoising.seed, np.zeros(WIDTH, np.float32))

    def reset(self, state: Account) -> None:
        state.total, state.jobs = np.zeros(WIDTH, np.float32), 0

    def snapshot(self, state: Account) -> Payload:
        return saved(KIND, {"total": state.total}, jobs=state.jobs)

    def restore(self, parameters: Parameters, snapshot: Payload) -> Account:
        state, known = self.open(parameters), Snapshot(KIND, snapshot)
        state.total, state.jobs = known.floats("total", (WIDTH,)), known.count("jobs")
        return state

    def begin(self, state: Account, payload: Payload) -> Count:
        if payload.text == "refuse":
            raise InvalidInput("text: expected anything else, got 'refuse'")
        attributes = payload.attributes
        steps, rows = whole(attributes, "steps", STEPS), whole(attributes, "rows", 1)
        key, previews = str(attributes.get("key", "")), attributes.get("previews") is True
        job = Count(state, state.jobs, payload.text, key, rows, steps, previews, started(payload))
        job.preparations = whole(attributes, "preparations", 1) if "preparations" in attributes else 0
        state.jobs += 1
        return job

    def update(self, job: Count, payload: Payload) -> None:
        if payload.text == "refuse":
            raise InvalidInput("text: expected anything else, got 'refuse'")
        job.text = payload.text

    def advance(self, jobs: Sequence[Count]) -> list[list[Produced] | Exception]:
        time.sleep((self._step_ms + self._row_ms * sum(job.rows for job in jobs)) / 1000)  # what a network would take
        for job in jobs:
            misbehave(job.text)
        return [InvalidInput("text: expected no 'invalid'") if job.text == "invalid" else self.add(job) for job in jobs]

    def add(self, job: Count) -> list[Produced]:
        drawn = np.random.default_rng((job.account.seed, job.number, job.step))
        job.sums = job.sums + drawn.standard_normal(WIDTH, np.float32)
        job.step += 1
        if job.calls_left:
            return [produced(job, job.sums, {PREVIEW: job.step - 1}, units=0)] if job.previews else []
        job.account.total = job.account.total + job.sums
        return [produced(job, job.account.total, {}, units=job.rows)]

    def abandon(self, job: Count) -> None: ...

    def close(self, state: Account) -> None: ...


def whole(attributes: dict[str, Scalar], name: str, default: int) -> int:
    value = attributes.get(name, default)
    if type(value) is not int or not 1 <= value <= 10_000:
        raise InvalidInput(f"{name}: expected a whole number from 1 to 10000, got {value!r}")
    return value


def started(payload: Payload) -> NDArray[np.float32]:
    start = payload.arrays.get("start")
    if start is None:
        return np.zeros(WIDTH, np.float32)
    if (start.dtype, start.shape) != ("float32", (WIDTH,)):
        raise InvalidInput(f"start: expected float32 of shape [{WIDTH}], got {start.dtype} of shape {list(start.shape)}")
    return cast(NDArray[np.float32], start.numpy().copy())


def misbehave(text: str) -> None:
    match text:
        case "raise":
            raise RuntimeError("told to")
        case "hang":
            while True:
                time.sleep(60)
        case _:
            pass


def produced(job: Count, sums: NDArray[np.float32], attributes: dict[str, Scalar], units: int) -> Produced:
    return Produced(Payload(job.text, {"sums": Array.of(sums.copy())}, attributes), units=units)


def samples(options: object = None) -> GenerationSamples:
    draw = np.random.default_rng(1)
    starts = [Array.of(draw.standard_normal(WIDTH, np.float32)) for _ in range(6)]
    inputs = [Payload(str(at), {"start": one}, {"steps": 2 + at % 3, "previews": at == 1}) for at, one in enumerate(starts)]
    wrong = (Payload("refuse"), Payload("x", attributes={"steps": 0}), Payload("x", {"start": Array.of(np.zeros(3, np.float32))}))
    return GenerationSamples(
        parameters=Denoising(),
        sequences=(tuple(inputs[:3]), tuple(inputs[3:5]), tuple(inputs[1:3])),
        wrong=wrong,
        refused=(Denoising(sampler="edm"),),
        reseeded=Denoising(seed=7),
    )
