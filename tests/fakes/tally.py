"""A right GENERATION model: sums what it gets, with noise from a seed. Broken ones are made of it in broken_tallies.py."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from engines.conformance.samples import GenerationSamples
from engines.models import InvalidInput, Produced
from engines.models.snapshots import Snapshot, saved
from engines.parameters import Parameters, Speech
from engines.payloads import Array, Payload
from engines.pipeline import ExecutionType, Output, Pipeline, Stage

Row: TypeAlias = "tuple[Sum, Payload]"
Answer: TypeAlias = list[Produced] | InvalidInput
KIND = "tally 1"

TALLIES = Pipeline(
    name="fakes.tally:TALLIES",
    stages=(Stage("tally", ExecutionType.GENERATION, emits="sums", parameters=Speech),),
    edges=(),
    outputs=(Output("sums", "tally"),),
)


@dataclass(slots=True)
class Sum:
    seed: int
    total: NDArray[np.float32]
    values: int = 0


class Tally:
    """Takes `values` float32 [n]; emits their running sums, each 10 ms long. One voice: "tally"."""

    units = "values"

    @classmethod
    def load(cls, directory: Path, options: dict[str, object]) -> "Tally":
        return cls()

    def warm_up(self) -> None: ...

    def open(self, parameters: Parameters) -> Sum:
        speech = cast(Speech, parameters)
        if speech.voice != "tally":
            raise InvalidInput(f"voice: expected 'tally', got {speech.voice!r}")
        return Sum(speech.seed, np.zeros(1, np.float32))

    def reset(self, state: Sum) -> None:
        state.total, state.values = np.zeros(1, np.float32), 0

    def snapshot(self, state: Sum) -> Payload:
        return saved(KIND, {"total": state.total}, values=state.values)

    def restore(self, parameters: Parameters, snapshot: Payload) -> Sum:
        state, known = self.open(parameters), Snapshot(KIND, snapshot)
        state.total, state.values = known.floats("total", (1,)), known.count("values")
        return state

    def batch_key(self, state: Sum, payload: Payload) -> Hashable:
        return None

    def run(self, batch: Sequence[Row]) -> list[Answer]:
        read = [self.read(payload) for _, payload in batch]
        rows = zip(batch, read, strict=True)
        return [values if isinstance(values, InvalidInput) else [self.add(state, values)] for (state, _), values in rows]

    def flush(self, state: Sum) -> list[Produced]:
        return []

    def close(self, state: Sum) -> None: ...

    def read(self, payload: Payload) -> NDArray[np.float32] | InvalidInput:
        values = payload.arrays.get("values")
        if values is None or values.dtype != "float32" or len(values.shape) != 1:
            return InvalidInput("values: expected float32 of shape [n], got something else")
        return cast(NDArray[np.float32], values.numpy())

    def add(self, state: Sum, values: NDArray[np.float32]) -> Produced:
        noise = np.random.default_rng((state.seed, state.values)).standard_normal(len(values), np.float32)
        sums = np.cumsum(values) + state.total + noise
        pts = state.values / 100
        state.total, state.values = state.total + values.sum(), state.values + len(values)
        return Produced(Payload(arrays={"sums": Array.of(sums)}), pts, len(values))


def samples(options: object = None) -> GenerationSamples:
    sequences = tuple(tuple(values(*sizes)) for sizes in ((3, 5, 2), (4, 1), (2, 2, 2)))
    wrong = (Payload(), Payload(arrays={"values": Array.of(np.zeros((2, 2), np.float32))}))
    speech = Speech(voice="tally")
    return GenerationSamples(
        parameters=speech,
        sequences=sequences,
        wrong=wrong,
        refused=(Speech(voice="nobody"),),
        reseeded=Speech(voice="tally", seed=7),
    )


def values(*sizes: int) -> list[Payload]:
    draw = np.random.default_rng(sizes)
    arrays = [Array.of(draw.standard_normal(size, np.float32)) for size in sizes]
    return [Payload(arrays={"values": array}, attributes={"gain": 1}) for array in arrays]
