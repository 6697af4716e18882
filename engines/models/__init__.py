"""Model families, one self-contained file each. This module is the contract between them and the GENERATION engine."""

from collections.abc import Hashable, Sequence
from pathlib import Path
from typing import Protocol, TypeVar

import msgspec

from engines.parameters import Parameters
from engines.payloads import Payload

State = TypeVar("State")


class Produced(msgspec.Struct, frozen=True):
    """One output chunk of a model. `pts` is its media time in seconds; `units` is how much it holds in the model's unit."""

    payload: Payload
    pts: float = 0.0
    units: int = 0


class InvalidInput(ValueError):
    """The request's own fault, in a sentence that names the field, what was expected and what came."""


class NoRoom(RuntimeError):
    """What the request needs kept does not fit beside what is kept for others: a sentence with the numbers. It ends the
    request as overloaded."""


class GenerationModel(Protocol[State]):
    """Tensor in, tensor out. One thread calls it, never two at once. engines/conformance holds it to all that is said here.

    `State` is what the model keeps for one open request; `open` or `restore` makes it, `close` frees it. A model that keeps
    nothing inherits from engines.models.stateless.Stateless.

    Payloads are never copied on their way: what is put into one must not change afterwards, and of an input's arrays nothing
    may be kept but copies, since their memory goes back to whoever sent them.
    """

    units: str
    """What `Produced.units` counts: `windows`, `utterances`, `frames`, `samples`."""

    def warm_up(self) -> None:
        """Run every shape that matters once, so that the first request is as fast as the tenth."""
        ...

    def open(self, parameters: Parameters) -> State:
        """Raises InvalidInput, for instance for an unknown voice."""
        ...

    def reset(self, state: State) -> None:
        """As after `open`."""
        ...

    def snapshot(self, state: State) -> Payload:
        """The state as it is between two calls of `run`, for `restore` in another process: arrays and attributes, small, and
        marked with its kind and version (engines/models/snapshots.py). It does not change when the state does."""
        ...

    def restore(self, parameters: Parameters, snapshot: Payload) -> State:
        """A state that goes on exactly as the one would have that the snapshot was taken of, for a request with the same
        parameters. Raises InvalidInput for a snapshot that it cannot read, and what `open` raises."""
        ...

    def batch_key(self, state: State, payload: Payload) -> Hashable:
        """Inputs with equal keys may share a call of `run`. Asked between the other calls, on the event loop: pure and cheap."""
        ...

    def run(self, batch: Sequence[tuple[State, Payload]]) -> list[list[Produced] | InvalidInput]:
        """Work on one input of each of several requests; answers row by row, in order.

        When it raises for a batch, the engine calls it again with each row alone, so that only the guilty request fails: leave
        every state as it was until nothing can raise any more. InvalidInput in the place of a row ends that request.
        """
        ...

    def flush(self, state: State) -> list[Produced]:
        """The request's input has ended; what is still owed."""
        ...

    def close(self, state: State) -> None: ...


class GenerationModelLoader(Protocol):
    """Every model class has this constructor-like class method; `options` are the deployment's, already validated by it."""

    def load(self, directory: Path, options: dict[str, object]) -> "GenerationModel[object]": ...
