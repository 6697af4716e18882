"""64 people have something read to them at the same time."""

import asyncio
import re

import numpy as np
import openai
import pytest
from numpy.typing import NDArray

import recordings
from engines.speakable import speakable

pytestmark = [pytest.mark.real_models, pytest.mark.timeout(180)]

NUMBERS = range(21, 85)
NEAR = 1e-4
HEARD_AT_ONCE = 16
MISHEARD = 8
"""How many of all the numbers the small recogniser may get wrong: it writes 4.9 for forty-nine."""
STORY = "She counted the boats in the harbour, and then the gulls above them, and went home. "


def text(number: int) -> str:
    """Every fourth is long. What tells them apart comes last."""
    return f"{'' if number % 4 else STORY}The word is {number}."


async def spoken(client: openai.AsyncOpenAI, number: int) -> NDArray[np.float32]:
    answer = await client.audio.speech.create(model="piper-joe", voice="joe", input=text(number), response_format="pcm")
    return np.frombuffer(await answer.aread(), "<i2").astype(np.float32) / np.float32(2**15)


async def heard(client: openai.AsyncOpenAI, samples: NDArray[np.float32]) -> str:
    file = ("said.wav", recordings.wav(samples))
    return (await client.audio.transcriptions.create(model="whisper-tiny-en", file=file)).text


def numbers_in(said: str) -> set[int]:
    """Those of ours, whether in digits or in words."""
    plain = set(re.split(r"[ .,]+", speakable(said).lower()))
    return {number for number in NUMBERS if speakable(str(number)) in plain}


@pytest.mark.parametrize("every", [5, pytest.param(1, marks=pytest.mark.full)])
async def test_each_of_64_at_once_gets_its_own_and_all_of_it(client: openai.AsyncOpenAI, every: int) -> None:
    """The noise has a fixed seed, so that each must be what it is when nobody else asks. `every` so many are looked at."""
    asked = await asyncio.gather(*(spoken(client, number) for number in NUMBERS))
    numbers, together = NUMBERS[::every], asked[::every]
    for number, samples in zip(numbers, together, strict=True):
        alone = await spoken(client, number)
        assert samples.shape == alone.shape
        np.testing.assert_allclose(samples, alone, rtol=0, atol=NEAR)

    said: list[str] = []
    for first in range(0, len(together), HEARD_AT_ONCE):
        said += await asyncio.gather(*(heard(client, samples) for samples in together[first : first + HEARD_AT_ONCE]))
    found = {number: numbers_in(words) for number, words in zip(numbers, said, strict=True)}
    assert sum(not words for words in found.values()) * len(NUMBERS) <= MISHEARD * len(found)
    assert all(words <= {number} for number, words in found.items()), found
    assert all("boats" in words and "home" in words for number, words in zip(numbers, said, strict=True) if number % 4 == 0)
