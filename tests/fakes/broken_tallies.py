"""Tallies with one fault each."""

import itertools
import threading
import time
from collections.abc import Hashable, Sequence
from typing import cast

import numpy as np
from numpy.typing import NDArray

from engines.models import InvalidInput, Produced
from engines.parameters import Parameters, Speech
from engines.payloads import Array, Payload
from fakes.tally import Answer, Row, Sum, Tally


class Mute(Tally):
    def run(self, batch: Sequence[Row]) -> list[Answer]:
        return [[] for _ in batch]


class Restless(Tally):
    """Its noise is drawn from a generator of its own."""

    def __init__(self) -> None:
        self.draw = np.random.default_rng(1)

    def add(self, state: Sum, values: NDArray[np.float32]) -> Produced:
        return super().add(state, values + self.draw.standard_normal(len(values), np.float32))


class DifferentEachTime(Tally):
    """Each instance has weights of its own."""

    def __init__(self) -> None:
        self.offset = np.float32(np.random.default_rng().standard_normal())

    def add(self, state: Sum, values: NDArray[np.float32]) -> Produced:
        return super().add(state, values + self.offset)


class Fickle(Tally):
    def __init__(self) -> None:
        self.asked = itertools.count()

    def batch_key(self, state: Sum, payload: Payload) -> Hashable:
        return next(self.asked)


class Unhashable(Tally):
    def batch_key(self, state: Sum, payload: Payload) -> Hashable:
        return cast(Hashable, [payload.text])


class Blending(Tally):
    """Each row hears a little of the others."""

    def run(self, batch: Sequence[Row]) -> list[Answer]:
        for state, _ in batch:
            state.total = state.total + np.float32(len(batch) - 1)
        return super().run(batch)


class Backwards(Tally):
    def run(self, batch: Sequence[Row]) -> list[Answer]:
        return super().run(batch)[::-1]


class Shared(Tally):
    """One state for all requests, as if new for each."""

    def __init__(self) -> None:
        self.one = super().open(Speech(voice="tally"))

    def open(self, parameters: Parameters) -> Sum:
        self.one.seed = super().open(parameters).seed
        self.reset(self.one)
        return self.one


class Welcoming(Tally):
    def open(self, parameters: Parameters) -> Sum:
        return Sum(cast(Speech, parameters).seed, np.zeros(1, np.float32))


class Swallowing(Tally):
    def run(self, batch: Sequence[Row]) -> list[Answer]:
        return [[] if isinstance(answer, InvalidInput) else answer for answer in super().run(batch)]


class Terse(Tally):
    def read(self, payload: Payload) -> NDArray[np.float32] | InvalidInput:
        values = super().read(payload)
        return InvalidInput("no") if isinstance(values, InvalidInput) else values


class Infected(Tally):
    """One wrong row spoils the step."""

    def run(self, batch: Sequence[Row]) -> list[Answer]:
        answers = super().run(batch)
        wrong = [answer for answer in answers if isinstance(answer, InvalidInput)]
        return [wrong[0] for _ in batch] if wrong else answers


class Trusting(Tally):
    def read(self, payload: Payload) -> NDArray[np.float32] | InvalidInput:
        values = super().read(payload)
        return values if isinstance(values, InvalidInput) else values * np.float32(payload.attributes["gain"])


class Hasty(Tally):
    """Works on a row before it has read the next."""

    def run(self, batch: Sequence[Row]) -> list[Answer]:
        return [answer for row in batch for answer in super(Hasty, self).run([row])]


class Unforgetting(Tally):
    def reset(self, state: Sum) -> None: ...


class Draining(Tally):
    def snapshot(self, state: Sum) -> Payload:
        snapshot = super().snapshot(state)
        self.reset(state)
        return snapshot


class Aliasing(Tally):
    """Its snapshot is a view of the state, which changes in place."""

    def snapshot(self, state: Sum) -> Payload:
        snapshot = super().snapshot(state)
        return Payload(arrays={"total": Array.of(state.total)}, attributes=snapshot.attributes)

    def add(self, state: Sum, values: NDArray[np.float32]) -> Produced:
        place = state.total
        produced = super().add(state, values)
        place[:] = state.total
        state.total = place
        return produced


class Hoarding(Tally):
    def snapshot(self, state: Sum) -> Payload:
        snapshot = super().snapshot(state)
        return Payload(arrays={**snapshot.arrays, "past": Array.of(np.zeros(2 << 20, np.uint8))}, attributes=snapshot.attributes)


class Forgetful(Tally):
    def restore(self, parameters: Parameters, snapshot: Payload) -> Sum:
        super().restore(parameters, snapshot)
        return self.open(parameters)


class Homesick(Tally):
    """Keeps the state, and gives a number for it."""

    def __init__(self) -> None:
        self.kept: dict[int, Payload] = {}

    def snapshot(self, state: Sum) -> Payload:
        self.kept[len(self.kept)] = super().snapshot(state)
        return Payload(attributes={"number": len(self.kept) - 1})

    def restore(self, parameters: Parameters, snapshot: Payload) -> Sum:
        return super().restore(parameters, self.kept[int(snapshot.attributes["number"])])


class Credulous(Tally):
    def restore(self, parameters: Parameters, snapshot: Payload) -> Sum:
        state, total = self.open(parameters), snapshot.arrays.get("total")
        state.total = state.total if total is None else total.numpy().astype(np.float32)
        state.values = int(snapshot.attributes.get("values", 0))
        return state


class Seedless(Tally):
    def open(self, parameters: Parameters) -> Sum:
        state = super().open(parameters)
        state.seed = 0
        return state


class Eager(Tally):
    def flush(self, state: Sum) -> list[Produced]:
        return [Produced(Payload("the end"), pts=state.values / 100)]


class Rewinding(Tally):
    def add(self, state: Sum, values: NDArray[np.float32]) -> Produced:
        produced = super().add(state, values)
        return Produced(produced.payload, -produced.pts, produced.units)


class Uncounting(Tally):
    def add(self, state: Sum, values: NDArray[np.float32]) -> Produced:
        produced = super().add(state, values)
        return Produced(produced.payload, produced.pts, -1)


class Unsendable(Tally):
    def add(self, state: Sum, values: NDArray[np.float32]) -> Produced:
        produced = super().add(state, values)
        payload = Payload(arrays=produced.payload.arrays, attributes={"of": 2**64})
        return Produced(payload, produced.pts, produced.units)


class Reusing(Tally):
    """One buffer for all outputs."""

    def __init__(self) -> None:
        self.buffer = np.zeros(16, np.float32)

    def add(self, state: Sum, values: NDArray[np.float32]) -> Produced:
        produced = super().add(state, values)
        out = self.buffer[: len(values)]
        out[:] = produced.payload.arrays["sums"].numpy()
        return Produced(Payload(arrays={"sums": Array.of(out)}), produced.pts, produced.units)


class Clinging(Tally):
    """Looks at its last input again, next time."""

    last: Payload | None = None

    def read(self, payload: Payload) -> NDArray[np.float32] | InvalidInput:
        self.last = payload
        return super().read(payload)


class Leaking(Tally):
    def __init__(self) -> None:
        self.closed: list[bytes] = []

    def close(self, state: Sum) -> None:
        self.closed.append(bytes(100_000))


class Lingering(Tally):
    """In a worker, takes its time to let go of the first request that does not come to its end and is alone: an engine that is
    busy with others acknowledges an abort at once."""

    lingered = False
    flushed: Sum | None = None
    open_states = 0

    def open(self, parameters: Parameters) -> Sum:
        self.open_states += 1
        return super().open(parameters)

    def flush(self, state: Sum) -> list[Produced]:
        self.flushed = state
        return super().flush(state)

    def close(self, state: Sum) -> None:
        in_worker, alone = threading.current_thread() is not threading.main_thread(), self.open_states == 1
        self.open_states -= 1
        if in_worker and alone and state is not self.flushed and not self.lingered:
            self.lingered = True
            time.sleep(3.0)


class Crashing(Tally):
    def read(self, payload: Payload) -> NDArray[np.float32] | InvalidInput:
        values = payload.arrays["values"].numpy()
        return cast(NDArray[np.float32], values.reshape(len(values)))
