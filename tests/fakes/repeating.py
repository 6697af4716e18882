"""A mind for real servers that says again and again what it was told: whoever hears it knows for whom it was meant."""

import asyncio
import math
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path

from engines.models.text import TextDelta
from engines.parameters import Generation, Message

WORD_S = 0.02
"""As quick as the default model."""


class Repeating:
    """The thinker. Option `times`: an answer is what the user said last, so many times, numbered."""

    def __init__(self, times: int) -> None:
        self._times = times

    @classmethod
    def load(cls, directory: Path, options: dict[str, object], slots: int) -> "Repeating":
        return cls(int(str(options["times"])))

    async def warm_up(self) -> None: ...

    async def ending(self, messages: Sequence[Message]) -> float:
        return math.log(0.9)

    async def generate(self, messages: Sequence[Message], parameters: Generation) -> AsyncGenerator[TextDelta, None]:
        said = next(message.content for message in reversed(messages) if message.role == "user")
        for count in range(1, self._times + 1):
            await asyncio.sleep(WORD_S)
            yield TextDelta(f"{said}.{count} ", 10, 0, count, finish_reason="stop" if count == self._times else "")

    async def died(self) -> None:
        await asyncio.Event().wait()

    def shutdown(self) -> None: ...
