"""What the suite puts through a model: records to fill in for a model of one's own."""

from collections.abc import Mapping
from typing import TypeAlias

import msgspec

from engines.named_object import imported
from engines.parameters import Generation, Message, Parameters
from engines.payloads import Payload
from engines.worker.foreign import attempt


class GenerationSamples(msgspec.Struct, frozen=True, kw_only=True):
    """For a GENERATION or DIFFUSION model. `sequences` are the inputs of several requests with these `parameters`, all different;
    `wrong` are inputs that it must answer with InvalidInput, `refused` parameters that `open` must refuse.

    `reseeded` differs from `parameters` in its seed alone (None: the model draws nothing). `tolerance` is how far a number in
    an output of a batch may be from the one alone.
    """

    parameters: Parameters
    sequences: tuple[tuple[Payload, ...], ...]
    wrong: tuple[Payload, ...]
    refused: tuple[Parameters, ...] = ()
    reseeded: Parameters | None = None
    tolerance: float = 0.0

    def __post_init__(self) -> None:
        if len(self.sequences) < 2 or min(map(len, self.sequences)) < 2:
            raise ValueError(f"sequences: expected at least 2 of at least 2 inputs, got {[len(each) for each in self.sequences]}")


class TextSamples(msgspec.Struct, frozen=True, kw_only=True):
    """For an AR model. `conversations` differ; `wrong` is one that it must refuse. `parameters` let an answer be long enough to
    be stopped in the middle. With `drawing` (None: the model draws nothing), answers depend on the seed."""

    conversations: tuple[tuple[Message, ...], ...]
    wrong: tuple[Message, ...]
    parameters: Generation = Generation(max_tokens=8)
    drawing: Generation | None = None

    def __post_init__(self) -> None:
        if len(self.conversations) < 2:
            raise ValueError(f"conversations: expected at least 2, got {len(self.conversations)}")


Samples: TypeAlias = GenerationSamples | TextSamples


def samples_of(path: str, options: Mapping[str, object]) -> object:
    """What the function `module:function` makes of a stage's options in its deployment. Raises ValueError with a sentence."""
    try:
        make = imported(path)
    except ValueError as absent:
        raise ValueError(f"samples: {absent}") from absent
    if not callable(make):
        raise ValueError(f"samples {path!r}: expected a function of the stage's options, got {type(make).__name__}")
    made = attempt(make, options)
    if isinstance(made, Exception):
        raise ValueError(f"samples {path!r} cannot be made of the stage's options: {type(made).__name__}: {made}") from made
    return made
