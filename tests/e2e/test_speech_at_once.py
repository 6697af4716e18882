"""S15: 64 people have something read to them at the same time."""

import asyncio

import numpy as np
import openai
import pytest
from numpy.typing import NDArray

import recordings

pytestmark = [pytest.mark.real_models, pytest.mark.timeout(120)]

NUMBERS = range(21, 85)
NEAR = 1e-4
HEARD_AGAIN = NUMBERS[::8]


async def spoken(client: openai.AsyncOpenAI, number: int) -> NDArray[np.float32]:
    text = f"The word is {number}."
    answer = await client.audio.speech.create(model="piper-joe", voice="joe", input=text, response_format="pcm")
    return np.frombuffer(await answer.aread(), "<i2").astype(np.float32) / np.float32(2**15)


async def test_each_of_64_at_once_gets_its_own_and_all_of_it(client: openai.AsyncOpenAI) -> None:
    """The noise has a fixed seed, so that each must be what it is when nobody else asks."""
    together = await asyncio.gather(*(spoken(client, number) for number in NUMBERS))
    for number, samples in zip(NUMBERS, together, strict=True):
        alone = await spoken(client, number)
        assert samples.shape == alone.shape
        np.testing.assert_allclose(samples, alone, rtol=0, atol=NEAR)
    for number in HEARD_AGAIN:
        wav = recordings.wav(together[number - NUMBERS.start])
        heard = await client.audio.transcriptions.create(model="whisper-tiny-en", file=("said.wav", wav))
        assert str(number) in heard.text
