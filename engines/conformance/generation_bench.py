"""Drives a GENERATION model as its engine does: same keys, same calls, same handling of what it raises."""

from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from typing import Any

from engines.conformance import ConformanceFault
from engines.conformance.outputs import Answers, difference
from engines.conformance.samples import GenerationSamples
from engines.models import GenerationModel, InvalidInput, Produced
from engines.parameters import Parameters
from engines.payloads import Payload
from engines.worker.foreign import attempt
from engines.worker.model_calls import Outcome, flush_and_close, run_batch


class GenerationBench:
    """`load` gives another instance of the same model, loaded and warm."""

    def __init__(self, load: Callable[[], GenerationModel[Any]], samples: GenerationSamples) -> None:
        self.load = load
        self.model = load()
        self.samples = samples
        self.largest_step = 0
        """How many rows have been in one call of `run` at most."""
        self._alone: dict[int, Answers] = {}

    def alone(self, sequence: int) -> Answers:
        """What every check compares with: this sequence, with nothing else going on."""
        if sequence not in self._alone:
            self._alone[sequence] = self.answers(self.samples.sequences[sequence])
        return self._alone[sequence]

    def answers(self, inputs: Sequence[Payload], parameters: Parameters | None = None) -> Answers:
        return self.go_on(self.open(parameters), inputs)

    def open(self, parameters: Parameters | None = None) -> object:
        state = attempt(self.model.open, parameters or self.samples.parameters)
        if isinstance(state, Exception):
            raise ConformanceFault(f"open raised {state!r} for the samples' parameters") from state
        return state

    def go_on(self, state: object, inputs: Sequence[Payload]) -> Answers:
        """The rest of a request, to its close."""
        answers = [self.answer(state, payload) for payload in inputs]
        return [*answers, self.finish(state)]

    def answer(self, state: object, payload: Payload) -> list[Produced]:
        return answered(self.outcome(state, payload))

    def outcome(self, state: object, payload: Payload) -> Outcome:
        return self.outcomes([(state, payload)])[0]

    def finish(self, state: object) -> list[Produced]:
        flushed = flush_and_close(self.model, state).outcome
        if isinstance(flushed, Exception):
            raise ConformanceFault(f"flush or close raised {flushed!r}") from flushed
        return flushed

    def outcomes(self, rows: list[tuple[object, Payload]]) -> list[Outcome]:
        """Of one step for each key, as the engine groups them; in the order of `rows`."""
        groups: defaultdict[Hashable, list[int]] = defaultdict(list)
        outcomes: dict[int, Outcome] = {}
        for row, (state, payload) in enumerate(rows):
            key = attempt(self.model.batch_key, state, payload)
            if isinstance(key, Exception):
                outcomes[row] = key
            else:
                groups[_hashable(key)].append(row)
        for members in groups.values():
            outcomes.update(zip(members, self.step([rows[row] for row in members]), strict=True))
        return [outcomes[row] for row in range(len(rows))]

    def step(self, rows: list[tuple[object, Payload]]) -> list[Outcome]:
        """One call of `run`, and if it raises one for each row."""
        self.largest_step = max(self.largest_step, len(rows))
        return run_batch(self.model, rows).outcomes

    def compare(self, sequence: int, got: Answers, when: str) -> None:
        """With the sequence alone, as far as `got` goes, to the last bit."""
        self.compare_within(0.0, sequence, got, when)

    def compare_within(self, tolerance: float, sequence: int, got: Answers, when: str) -> None:
        if fault := difference(self.alone(sequence)[: len(got)], got, tolerance):
            raise ConformanceFault(f"{when}, sequence {sequence} differs from itself alone: {fault}")


def answered(outcome: Outcome) -> list[Produced]:
    if isinstance(outcome, Exception):
        raise ConformanceFault(f"run gave {outcome!r} for an input of the samples") from outcome
    return outcome


def refused(outcome: Outcome, what: str) -> InvalidInput:
    if isinstance(outcome, InvalidInput):
        return outcome
    came = f"raised {outcome!r}" if isinstance(outcome, Exception) else f"answered with {len(outcome)} chunks"
    raise ConformanceFault(f"{what}: expected InvalidInput, but the model {came}")


def _hashable(key: object) -> Hashable:
    if isinstance(key, Hashable) and not isinstance(attempt(hash, key), Exception):
        return key
    raise ConformanceFault(f"batch_key: expected something hashable, got {key!r}")
