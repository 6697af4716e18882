"""A stock client, and a file, for the end-to-end tests."""

import io
from collections.abc import AsyncIterator

import numpy as np
import openai
import pytest
import pytest_asyncio
import soundfile

import recordings
from bench.server import Server


@pytest_asyncio.fixture
async def client(server: Server) -> AsyncIterator[openai.AsyncOpenAI]:
    """The stock client, as a user would point it at us."""
    async with openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0) as stock:
        yield stock


@pytest.fixture(scope="session")
def question_wav() -> bytes:
    """A question as a user's file: stereo, 44.1 kHz."""
    spoken = recordings.read_by_espeak("What is the capital of France?").samples
    resampled = recordings.resample(spoken, recordings.RATE, 44_100)
    wav = io.BytesIO()
    soundfile.write(wav, np.stack([resampled, resampled], axis=1), 44_100, format="WAV")
    return wav.getvalue()
