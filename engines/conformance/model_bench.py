"""What the checks of models without text know of the model that they hold to its contract."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Sequence
from typing import Any, Generic, Protocol, Self, TypeVar

from engines.conformance import ConformanceFault
from engines.conformance.outputs import Answers, difference
from engines.conformance.samples import GenerationSamples
from engines.models import InvalidInput, Produced
from engines.parameters import Parameters
from engines.payloads import Payload
from engines.worker.foreign import attempt
from engines.worker.model_calls import Outcome


class KeepsState(Protocol):
    """What GENERATION and DIFFUSION models have in common."""

    def open(self, parameters: Parameters) -> Any: ...
    def reset(self, state: Any) -> None: ...
    def snapshot(self, state: Any) -> Payload: ...
    def restore(self, parameters: Parameters, snapshot: Payload) -> Any: ...
    def close(self, state: Any) -> None: ...


M = TypeVar("M", bound=KeepsState)


class ModelBench(ABC, Generic[M]):
    """`load` gives another instance of the same model, loaded and warm."""

    def __init__(self, load: Callable[[], M], samples: GenerationSamples) -> None:
        self.load = load
        self.model = load()
        self.samples = samples
        self.largest_step = 0
        """How many rows have been in one call of the model at most."""
        self._alone: dict[int, Answers] = {}

    @abstractmethod
    def outcomes(self, rows: list[tuple[object, Payload]]) -> list[Outcome]:
        """Of one input of each of several requests, which share calls as the engine lets them; in the order of `rows`."""
        ...

    @abstractmethod
    def finish(self, state: object) -> list[Produced]:
        """The request has ended: what is still owed. Nothing of it is left."""
        ...

    @abstractmethod
    def break_off(self, state: object, payload: Payload) -> None:
        """Begin with this input, and give it up in the middle, as far as there is one."""
        ...

    def over(self, model: M) -> Self:
        """A bench of the same kind for this instance."""
        return type(self)(lambda: model, self.samples)

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

    def compare(self, sequence: int, got: Answers, when: str) -> None:
        """With the sequence alone, as far as `got` goes, to the last bit."""
        self.compare_within(0.0, sequence, got, when)

    def compare_within(self, tolerance: float, sequence: int, got: Answers, when: str) -> None:
        if fault := difference(self.alone(sequence)[: len(got)], got, tolerance):
            raise ConformanceFault(f"{when}, sequence {sequence} differs from itself alone: {fault}")


def answered(outcome: Outcome) -> list[Produced]:
    if isinstance(outcome, Exception):
        raise ConformanceFault(f"the model gave {outcome!r} for an input of the samples") from outcome
    return outcome


def refused(outcome: Outcome, what: str) -> InvalidInput:
    if isinstance(outcome, InvalidInput):
        return outcome
    came = f"raised {outcome!r}" if isinstance(outcome, Exception) else f"answered with {len(outcome)} chunks"
    raise ConformanceFault(f"{what}: expected InvalidInput, but the model {came}")


def hashable(key: object, name: str) -> Hashable:
    if isinstance(key, Hashable) and not isinstance(attempt(hash, key), Exception):
        return key
    raise ConformanceFault(f"{name}: expected something hashable, got {key!r}")
