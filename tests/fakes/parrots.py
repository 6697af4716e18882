"""AR models that repeat the last message word by word: a right one, and some with one fault each."""

import asyncio
import math
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from typing import Literal

import numpy as np

from engines.conformance.samples import TextSamples
from engines.models import InvalidInput
from engines.models.text import TextDelta
from engines.parameters import Generation, Message

MOST_WORDS = 50
SLOTS = 4


class Parrot:
    """One token is one word. With a temperature, the seed shuffles the words. `free` counts answers that it has room for."""

    def __init__(self) -> None:
        self.free = asyncio.Semaphore(SLOTS)

    @classmethod
    def load(cls, directory: Path, options: dict[str, object], slots: int) -> "Parrot":
        return cls()

    async def warm_up(self) -> None: ...

    async def generate(self, messages: Sequence[Message], parameters: Generation) -> AsyncGenerator[TextDelta, None]:
        words = self.words(messages, parameters)
        limit = parameters.max_tokens or len(words)
        async with self.free:
            for count, word in enumerate(words[:limit], start=1):
                await asyncio.sleep(0)
                yield self.delta(word + " ", count, self.reason(count, words, limit))

    async def ending(self, messages: Sequence[Message]) -> float:
        return math.log(len(messages[-1].content.split()) / (1 + MOST_WORDS))

    async def died(self) -> None:
        await asyncio.Event().wait()

    def shutdown(self) -> None: ...

    def words(self, messages: Sequence[Message], parameters: Generation) -> list[str]:
        words = messages[-1].content.split()
        if len(words) > MOST_WORDS:
            raise InvalidInput(f"messages: expected at most {MOST_WORDS} words, got {len(words)}")
        if parameters.temperature > 0:
            np.random.default_rng(parameters.seed).shuffle(words)
        return words

    def reason(self, count: int, words: list[str], limit: int) -> Literal["", "stop", "length"]:
        if count == len(words):
            return "stop"
        return "length" if count == limit else ""

    def delta(self, text: str, count: int, reason: Literal["", "stop", "length"]) -> TextDelta:
        return TextDelta(text, prompt_tokens=9, cached_tokens=3, completion_tokens=count, finish_reason=reason)


class Endless(Parrot):
    """Never says why it ends."""

    def reason(self, count: int, words: list[str], limit: int) -> Literal["", "stop", "length"]:
        return ""


class Miscounting(Parrot):
    def delta(self, text: str, count: int, reason: Literal["", "stop", "length"]) -> TextDelta:
        return TextDelta(text, prompt_tokens=2, cached_tokens=3, completion_tokens=count, finish_reason=reason)


class Talkative(Parrot):
    async def generate(self, messages: Sequence[Message], parameters: Generation) -> AsyncGenerator[TextDelta, None]:
        async for delta in super().generate(messages, Generation()):
            yield delta


class Stuttering(Parrot):
    """Shorter answers begin otherwise."""

    def words(self, messages: Sequence[Message], parameters: Generation) -> list[str]:
        return [*["er"] * (parameters.max_tokens == 2), *super().words(messages, parameters)]


class Overhearing(Parrot):
    """Says whether it is alone."""

    def words(self, messages: Sequence[Message], parameters: Generation) -> list[str]:
        return [f"{self.free._value}", *super().words(messages, parameters)]  # pyright: ignore[reportPrivateUsage] (a fake)

    async def generate(self, messages: Sequence[Message], parameters: Generation) -> AsyncGenerator[TextDelta, None]:
        async with self.free:
            async for delta in super().generate(messages, parameters):
                yield delta


class Crashing(Parrot):
    """Refuses by falling over."""

    def words(self, messages: Sequence[Message], parameters: Generation) -> list[str]:
        try:
            return super().words(messages, parameters)
        except InvalidInput:
            raise IndexError("scripted") from None


class Strict(Parrot):
    def words(self, messages: Sequence[Message], parameters: Generation) -> list[str]:
        if parameters.top_p > 1:
            raise ZeroDivisionError("scripted")
        return super().words(messages, parameters)


class Holding(Parrot):
    """What is closed in the middle keeps its place."""

    async def generate(self, messages: Sequence[Message], parameters: Generation) -> AsyncGenerator[TextDelta, None]:
        await self.free.acquire()
        words = self.words(messages, parameters)
        for count, word in enumerate(words, start=1):
            yield self.delta(word + " ", count, self.reason(count, words, len(words)))
        self.free.release()


class Seedless(Parrot):
    def words(self, messages: Sequence[Message], parameters: Generation) -> list[str]:
        return super().words(messages, Generation())


class Restless(Parrot):
    """Draws as it likes, whatever the seed."""

    def __init__(self) -> None:
        super().__init__()
        self.drawn = 0

    def words(self, messages: Sequence[Message], parameters: Generation) -> list[str]:
        self.drawn += 1
        return super().words(messages, Generation(temperature=parameters.temperature, seed=self.drawn))


class Likely(Parrot):
    async def ending(self, messages: Sequence[Message]) -> float:
        return 0.5


def samples(options: object = None) -> TextSamples:
    asked = ("who is a pretty parrot then", "polly wants a cracker or two")
    return TextSamples(
        conversations=tuple((Message("user", words),) for words in asked),
        wrong=(Message("user", "word " * 100),),
        parameters=Generation(max_tokens=5),
        drawing=Generation(max_tokens=5, temperature=1.0),
    )
