"""What a model keeps for a request: begun anew, taken along, and touched by nobody else. Tried at every place of a sequence."""

from collections.abc import Iterator
from typing import Any, TypeAlias

from engines.conformance import ConformanceFault
from engines.conformance.model_bench import KeepsState, ModelBench
from engines.conformance.outputs import Answers, fingerprint, travelled
from engines.models import InvalidInput
from engines.payloads import Array, Payload
from engines.worker.foreign import attempt

Bench: TypeAlias = ModelBench[Any]
SNAPSHOT_LIMIT_BYTES = 1 << 20
"""It is written at each turn of a session, and to a store that others use too."""


def reset_begins_anew(bench: Bench) -> None:
    """after reset, a request answers as if just opened"""
    for place, state, _ in _places(bench):
        bench.model.reset(state)
        bench.compare(0, bench.go_on(state, bench.samples.sequences[0]), f"reset after {place} inputs")


def snapshots_change_nothing(bench: Bench) -> None:
    """a request goes on after a snapshot as without one, and the snapshot stays as it was taken"""
    for place, state, answers in _places(bench):
        snapshot = bench.model.snapshot(state)
        taken = fingerprint(snapshot)
        rest = bench.go_on(state, bench.samples.sequences[0][place:])
        bench.compare(0, [*answers, *rest], f"with a snapshot after {place} inputs")
        if fingerprint(snapshot) != taken:
            raise ConformanceFault(f"the snapshot after {place} inputs changed when the request went on: copy its arrays")


def restored_goes_on(bench: Bench) -> None:
    """what is restored from a snapshot that has travelled goes on exactly"""
    _goes_on_with(bench, bench.model)


def restored_goes_on_elsewhere(bench: Bench) -> None:
    """another instance of the model restores it as well: everything is in the snapshot"""
    _goes_on_with(bench, bench.load())


def snapshots_are_small(bench: Bench) -> None:
    """a snapshot is smaller than 1 MiB"""
    for place, state, _ in _places(bench):
        size = bench.model.snapshot(state).nbytes
        if size > SNAPSHOT_LIMIT_BYTES:
            raise ConformanceFault(f"snapshot after {place} inputs: expected at most {SNAPSHOT_LIMIT_BYTES} bytes, got {size}")
        bench.model.close(state)


def unreadable_snapshots_are_refused(bench: Bench) -> None:
    """restore raises InvalidInput for a snapshot of another kind, or with a field missing or bent"""
    for place, state, _ in _places(bench):
        good = bench.model.snapshot(state)
        bench.model.close(state)
        for what, broken in _broken(good):
            outcome = attempt(bench.model.restore, bench.samples.parameters, broken)
            if not isinstance(outcome, InvalidInput):
                came = f"raised {outcome!r}" if isinstance(outcome, Exception) else "restored it"
                raise ConformanceFault(f"{what} after {place} inputs: expected InvalidInput, but the model {came}")


def interleaving_changes_nothing(bench: Bench) -> None:
    """two requests whose steps alternate hear nothing of each other"""
    first, second = bench.samples.sequences[:2]
    states = bench.open(), bench.open()
    answers: list[Answers] = [[], []]
    for place in range(max(len(first), len(second))):
        for row, inputs in enumerate((first, second)):
            if place < len(inputs):
                answers[row].append(bench.answer(states[row], inputs[place]))
    for row, state in enumerate(states):
        bench.compare(row, [*answers[row], bench.finish(state)], "interleaved with another")


def _places(bench: Bench) -> Iterator[tuple[int, object, Answers]]:
    """A request that has had 0, 1, 2, … inputs of the first sequence, and what they gave."""
    inputs = bench.samples.sequences[0]
    for place in range(len(inputs) + 1):
        state = bench.open()
        yield place, state, [bench.answer(state, payload) for payload in inputs[:place]]


def _goes_on_with(bench: Bench, model: KeepsState) -> None:
    there = bench.over(model)
    for place, state, answers in _places(bench):
        snapshot = travelled(bench.model.snapshot(state))
        bench.model.close(state)
        restored = attempt(model.restore, bench.samples.parameters, snapshot)
        if isinstance(restored, Exception):
            raise ConformanceFault(f"restore raised {restored!r} for a snapshot after {place} inputs") from restored
        rest = there.go_on(restored, bench.samples.sequences[0][place:])
        bench.compare(0, [*answers, *rest], f"restored after {place} inputs")


def _broken(good: Payload) -> Iterator[tuple[str, Payload]]:
    yield "an empty payload", Payload()
    yield "another model's snapshot", Payload(attributes={"snapshot": "another model 1"})
    for name in good.attributes:
        if "." in name:  # one of a group, which may be of any length
            continue
        rest = {other: value for other, value in good.attributes.items() if other != name}
        yield f"a snapshot without {name}", Payload(good.text, good.arrays, rest)
        for value in (7, 1.5) if isinstance(good.attributes[name], str) else ("strange",):
            yield f"a snapshot with {name}={value!r}", Payload(good.text, good.arrays, {**good.attributes, name: value})
    for name, array in good.arrays.items():
        rest = {other: value for other, value in good.arrays.items() if other != name}
        yield f"a snapshot without {name}", Payload(good.text, rest, good.attributes)
        for spoilt in (Array("int8", (len(array.data),), array.data), Array(array.dtype, (7, 7, 7), array.data)):
            arrays = {**good.arrays, name: spoilt}
            yield f"a snapshot with {name} as {spoilt.dtype} of shape {spoilt.shape}", Payload(good.text, arrays, good.attributes)
