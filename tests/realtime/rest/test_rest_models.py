"""`/v1/models` with the stock client."""

import openai
import pytest


async def test_the_deployments_names_are_listed(client: openai.AsyncOpenAI) -> None:
    names = [model.id async for model in client.models.list()]
    pictures, films = ["painter-1", "antiphon-images"], ["director-1", "antiphon-videos"]
    assert names == ["antiphon-voice", "smollm2", "piper", "kokoro", "whisper", *pictures, *films]


async def test_one_by_name(client: openai.AsyncOpenAI) -> None:
    model = await client.models.retrieve("piper")
    assert (model.id, model.object, model.owned_by) == ("piper", "model", "antiphon")
    with pytest.raises(openai.NotFoundError, match="got 'other'"):
        await client.models.retrieve("other")
