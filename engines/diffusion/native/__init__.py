"""Native step models: the contract between a network that denoises and what runs it, engines/diffusion/native/model.py.

The network predicts clean values from noisy ones. Everything around it is the same for all of them: levels of noise, steps,
draws, padding, and what is kept for a session.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Generic, NamedTuple, Protocol, TypeVar

import msgspec
import torch
from torch import Tensor

from engines.diffusion.native.guides import Guide
from engines.diffusion.native.levels import Levels, Parametrisation
from engines.models import Produced
from engines.payloads import Payload

Content = TypeVar("Content", bound=msgspec.Struct)
"""What a session holds: a frozen record of RollingContext and KeyValues (context.py, key_values.py), and of nothing else."""
Cond = TypeVar("Cond")
"""What the network is told besides its noisy values, as the model likes it."""


class Description(NamedTuple):
    """What a step model says of itself.

    `kind` names what its sessions hold, with its version or the hash of its weights: a snapshot of another kind is refused.
    `shape` is that of one row of x. `takes` is the parametrisation of t in `denoise`. `steps` and `levels` are what it is sampled
    with unless somebody asks for something else.
    """

    kind: str
    units: str
    shape: tuple[int, ...]
    takes: Parametrisation
    steps: int
    levels: Levels


@dataclass(frozen=True, slots=True)
class Start(Generic[Cond]):
    """What a model makes of one input. None: as the model or the request says.

    Jobs of equal `shape` and `bucket` share forwards: `bucket` is what else must be equal for that, such as a padded length.
    With a `seed` of its own the job's noise depends on that alone, so that the same input and seed give the same output at any
    time.
    """

    cond: Cond
    shape: tuple[int, ...] | None = None
    bucket: Hashable = None
    steps: int | None = None
    seed: int | None = None
    guide: Guide | None = None


class Finished(NamedTuple, Generic[Content]):
    """What a job that went well puts out, and what its session holds from then on."""

    produced: list[Produced]
    content: Content


class StepModel(Protocol[Content, Cond]):
    """One thread calls it, never two at once; gradients are off unless a guide needs them.

    Contents, conditions and tensors that it is given are read and never written: sessions share them. Nothing of a payload's
    arrays may be kept but copies.
    """

    @property
    def description(self) -> Description: ...

    @property
    def device(self) -> torch.device:
        """Where x is wanted."""
        ...

    def empty(self) -> Content:
        """What a session holds when it opens. All share it."""
        ...

    def prepare(self, content: Content, payload: Payload) -> Start[Cond]:
        """Whatever needs doing once for a job, such as to encode what is seen. Raises InvalidInput."""
        ...

    def update(self, content: Content, cond: Cond, payload: Payload) -> Cond:
        """The condition from the next step on: a new one, of the same shapes. Raises InvalidInput, also when it cannot."""
        ...

    def denoise(self, x: Tensor, t: Tensor, cond: Sequence[Cond], contents: Sequence[Content]) -> Tensor:
        """The clean values, float32 [n, *shape], that the network believes to be behind the noisy `x` of the same shape, whose
        rows are at the levels `t`, float32 [n]. `cond` and `contents` have one entry a row. No row may depend on another."""
        ...

    def finish(self, content: Content, cond: Cond, x: Tensor) -> Finished[Content]:
        """The job is done with the clean `x`, float32 of its shape. Raises InvalidInput, which ends the request; then, and after
        an abort, the session holds what it held before the job."""
        ...

    def warm_ups(self) -> Sequence[Payload]:
        """Inputs, run to their ends before the first request: one for each shape that matters."""
        ...
