"""The contract between DIFFUSION models and their engine: work that goes on in calls, which jobs of several requests share."""

from collections.abc import Hashable, Sequence
from pathlib import Path
from typing import Protocol, TypeVar

from engines.models import Produced
from engines.parameters import Parameters
from engines.payloads import Payload

State = TypeVar("State")
J = TypeVar("J", bound="Job")

UPDATE = "update"
"""An input with this attribute (True) is no new job: its text is the prompt of the job under way from the next step on. It is
answered by a chunk with the same attribute, or with REFUSED."""
REFUSED = "refused"
"""The attribute of a chunk that answers an update which was not taken: why, in a sentence. The job goes on as it was."""
SHED = "shed"
"""The attribute of a chunk that stands for a job which was not done: why, in a sentence. Only in requests that go on."""
PREVIEW = "preview"
"""The attribute of a chunk that shows how far a job is: which one of its previews, from 0."""
JOB = "job"
"""The engine's attribute of every chunk of a job, also of SHED: which one of its request, from 0."""
STEP, STEPS = "step", "steps"
"""The engine's attributes of every chunk of a job that has begun: how many steps are done, of how many."""
DEADLINE_MS = "deadline_ms"
"""The attribute of an input that is to be done so many milliseconds after it has come, whatever its request says."""


class Job(Protocol):
    """One input's work. Belongs to the engine's thread; between its calls the engine reads these on the loop."""

    @property
    def key(self) -> Hashable:
        """Jobs with equal keys may share the next call."""
        ...

    @property
    def rows(self) -> int:
        """Of the next call, along the batch axis; at least 1."""
        ...

    @property
    def calls_left(self) -> int:
        """Calls still to come, the next one included; an estimate that only the end makes exact. 0: the job is done."""
        ...

    @property
    def prepares(self) -> bool:
        """The next call comes before its steps, such as to encode a prompt: until then nobody can share those with it."""
        ...

    @property
    def step(self) -> int:
        """Denoising steps done."""
        ...

    @property
    def steps(self) -> int: ...


class DiffusionModel(Protocol[State, J]):
    """One thread calls it, never two at once. `State` is what it keeps for an open request, as of a GENERATION model; a request
    has one job under way at most, and the next input waits for its end.

    Payloads are never copied on their way: what is put into one must not change afterwards, and of an input's arrays nothing may
    be kept but copies.
    """

    units: str
    """What `Produced.units` counts: `pictures`, `frames`, `actions`."""

    def warm_up(self) -> None: ...

    def open(self, parameters: Parameters) -> State:
        """Raises InvalidInput."""
        ...

    def reset(self, state: State) -> None: ...

    def snapshot(self, state: State) -> Payload: ...

    def restore(self, parameters: Parameters, snapshot: Payload) -> State:
        """Raises InvalidInput."""
        ...

    def begin(self, state: State, payload: Payload) -> J:
        """The job for one input, up to before its first call, of which there is at least one. Raises InvalidInput."""
        ...

    def update(self, job: J, payload: Payload) -> None:
        """A new prompt from the next step on. Raises InvalidInput, also when this model cannot; the job goes on as it was."""
        ...

    def advance(self, jobs: Sequence[J]) -> list[list[Produced] | Exception]:
        """One call for jobs of equal keys; job by job what came of it: nothing yet, a preview, or its outputs when `calls_left`
        is 0 afterwards. An exception in the place of a job ends that job and its request.

        When it raises for several jobs, the engine calls it again with each alone, so that only the guilty one fails: leave every
        job as it was until nothing can raise any more.
        """
        ...

    def abandon(self, job: J) -> None:
        """It is to go no further: everything of it is freed. Not called for a job that is done, or failed in `begin`."""
        ...

    def close(self, state: State) -> None:
        """After the request's last job."""
        ...


class DiffusionModelLoader(Protocol):
    """Every model class has this constructor-like class method; `options` are the deployment's, already validated by it."""

    def load(self, directory: Path, options: dict[str, object]) -> "DiffusionModel[object, Job]": ...
