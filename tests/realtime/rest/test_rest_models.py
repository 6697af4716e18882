"""`/v1/models` with the stock client."""

import openai
import pytest


async def test_the_deployments_names_are_listed(client: openai.AsyncOpenAI) -> None:
    names = [model.id async for model in client.models.list()]
    assert names == ["antiphon-voice", "smollm2", "tts", "whisper"]


async def test_one_by_name(client: openai.AsyncOpenAI) -> None:
    model = await client.models.retrieve("tts")
    assert (model.id, model.object, model.owned_by) == ("tts", "model", "antiphon")
    with pytest.raises(openai.NotFoundError, match="there is no model 'other' here"):
        await client.models.retrieve("other")
