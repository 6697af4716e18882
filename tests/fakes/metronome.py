"""A language model for real worker processes that says what time it is."""

import asyncio
import random
import time
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path

from engines.models.text import TextDelta
from engines.parameters import Generation, Message
from engines.pipeline import ExecutionType, Output, Pipeline, Stage


class Metronome:
    """Asked for `COUNT GAP_MS` it gives COUNT deltas about GAP_MS apart; each says when it was made (time.monotonic_ns).

    The gaps vary by a half, so that several of these do not fall into step."""

    @classmethod
    def load(cls, directory: Path, options: dict[str, object], slots: int) -> "Metronome":
        return cls()

    async def warm_up(self) -> None: ...

    async def generate(self, messages: Sequence[Message], parameters: Generation) -> AsyncGenerator[TextDelta, None]:
        count, gap_ms = messages[-1].content.split()
        for made in range(1, int(count) + 1):
            await asyncio.sleep(float(gap_ms) / 1000 * random.uniform(0.5, 1.5))
            yield TextDelta(str(time.monotonic_ns()), 0, 0, made, "stop" if made == int(count) else "")

    async def ending(self, messages: Sequence[Message]) -> float:
        return 0.0

    async def died(self) -> None:
        await asyncio.Event().wait()

    def shutdown(self) -> None: ...


METRONOME = Pipeline(
    name="fakes.metronome:METRONOME",
    stages=(Stage("metronome", ExecutionType.AR, emits="text", parameters=Generation),),
    edges=(),
    outputs=(Output("time", "metronome"),),
)
