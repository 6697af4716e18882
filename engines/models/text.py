"""The contract between language models and the AR engine."""

from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from typing import Literal, Protocol

import msgspec

from engines.parameters import Generation, Message


class TextDelta(msgspec.Struct, frozen=True):
    """New text since the last delta; it may hold several tokens, or none yet of a character that needs more bytes.

    `completion_tokens` counts from the start of the answer. `finish_reason` is set on the last delta only.
    """

    text: str
    prompt_tokens: int
    cached_tokens: int
    completion_tokens: int
    finish_reason: Literal["", "stop", "length"] = ""


class ModelDied(RuntimeError):
    """The model's own process is gone, or hangs; no later call can succeed."""


class TextModel(Protocol):
    """Batches by itself: any number of `generate` may run side by side."""

    async def warm_up(self) -> None:
        """Afterwards the first request is as fast as the tenth."""
        ...

    def generate(self, messages: Sequence[Message], parameters: Generation) -> AsyncGenerator[TextDelta, None]:
        """Deltas until one with a finish_reason. Closing the generator aborts the work.

        Raises InvalidInput for a prompt that does not fit, and ModelDied.
        """
        ...

    async def ending(self, messages: Sequence[Message]) -> float:
        """Log-probability that the last message ends here: the model would next close it, or put a mark that ends a sentence.

        Raises what `generate` raises.
        """
        ...

    async def died(self) -> None:
        """Returns when the model can serve no more."""
        ...

    def shutdown(self) -> None: ...


class TextModelLoader(Protocol):
    """Every language model's class has this. It may take long and is called in a thread; `slots` requests run at once."""

    def load(self, directory: Path, options: dict[str, object], slots: int) -> TextModel: ...
