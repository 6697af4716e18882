"""Drives an AR model as its engine does."""

from collections.abc import Sequence
from contextlib import aclosing

from engines.conformance import ConformanceFault
from engines.conformance.samples import TextSamples
from engines.models import InvalidInput
from engines.models.text import TextDelta, TextModel
from engines.parameters import Generation, Message
from engines.worker.foreign import attempt_async


class TextBench:
    """`model` is loaded and warm."""

    def __init__(self, model: TextModel, samples: TextSamples) -> None:
        self.model = model
        self.samples = samples

    async def deltas(self, conversation: Sequence[Message], parameters: Generation | None = None) -> list[TextDelta]:
        answer = await attempt_async(self.read(conversation, parameters or self.samples.parameters))
        if isinstance(answer, Exception):
            raise ConformanceFault(f"generate raised {answer!r} for a conversation of the samples") from answer
        return answer

    async def text(self, conversation: Sequence[Message], parameters: Generation | None = None) -> str:
        return "".join(delta.text for delta in await self.deltas(conversation, parameters))

    async def begin_and_stop(self, conversation: Sequence[Message]) -> None:
        """Close the generator after its first delta."""
        async with aclosing(self.model.generate(conversation, self.samples.parameters)) as deltas:
            await anext(deltas)

    async def refused(self, conversation: Sequence[Message]) -> InvalidInput:
        answer = await attempt_async(self.read(conversation, self.samples.parameters))
        if isinstance(answer, InvalidInput):
            return answer
        came = f"raised {answer!r}" if isinstance(answer, Exception) else f"answered with {len(answer)} deltas"
        raise ConformanceFault(f"a wrong conversation: expected InvalidInput, but the model {came}")

    async def read(self, conversation: Sequence[Message], parameters: Generation) -> list[TextDelta]:
        """Raises what the model raises."""
        async with aclosing(self.model.generate(conversation, parameters)) as deltas:
            return [delta async for delta in deltas]
