"""Load on something that answers questions with text: so many at once, or as people come by chance.

Both sides of a comparison get the same questions in the same order from here.
"""

import asyncio
import random
import time
from collections.abc import Coroutine, Iterable, Sequence
from typing import Protocol

import msgspec

from recordings import QUESTIONS


class Question(msgspec.Struct, frozen=True):
    text: str
    max_tokens: int


class Answer(msgspec.Struct, frozen=True):
    """`first_s` and `total_s`: from the question to the first text, and to the end."""

    first_s: float
    total_s: float
    tokens: int


class Answerer(Protocol):
    async def ask(self, question: Question) -> Answer: ...


class Burst(msgspec.Struct, frozen=True):
    """`wall_s`: from the first question to the end of the last answer."""

    answers: list[Answer]
    wall_s: float

    @property
    def tokens(self) -> int:
        return sum(answer.tokens for answer in self.answers)

    @property
    def tokens_per_s(self) -> float:
        return self.tokens / self.wall_s


def questions(count: int, max_tokens: tuple[int, int], seed: int) -> list[Question]:
    """Each begins differently, so that none finds its prompt in the cache; 15 to 60 tokens long."""
    draw = random.Random(seed)
    return [
        Question(f"{draw.randrange(10**6)}: " + " ".join(draw.sample(QUESTIONS, draw.randint(1, 5))), draw.randint(*max_tokens))
        for _ in range(count)
    ]


async def closed_loop(answerer: Answerer, asked: Sequence[Question], at_once: int) -> Burst:
    """`at_once` people, each of whom asks the next question when the last one is answered."""
    left = iter(asked)

    async def person() -> list[Answer]:
        return [await answerer.ask(question) for question in left]

    return await _burst(person() for _ in range(at_once))


async def open_loop(answerer: Answerer, asked: Sequence[Question], per_second: float, seed: int) -> Burst:
    """Questions come by chance (Poisson), whether or not the earlier ones are answered."""
    draw = random.Random(seed)

    async def person(question: Question, after_s: float) -> list[Answer]:
        await asyncio.sleep(after_s)
        return [await answerer.ask(question)]

    arrivals: list[float] = []
    for _ in asked:
        arrivals.append((arrivals[-1] if arrivals else 0.0) + draw.expovariate(per_second))
    return await _burst(person(question, after_s) for question, after_s in zip(asked, arrivals, strict=True))


async def _burst(people: Iterable[Coroutine[None, None, list[Answer]]]) -> Burst:
    started = time.monotonic()
    answered = await asyncio.gather(*people)
    return Burst([answer for answers in answered for answer in answers], time.monotonic() - started)
