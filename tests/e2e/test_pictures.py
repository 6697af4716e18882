"""Pictures from a whole server: stock client, gateway, workers with the real stages around a painter without networks."""

import asyncio
import base64
from collections.abc import AsyncIterator

import aiohttp
import numpy as np
import openai
import pytest
import pytest_asyncio

from fakes.painted import colour
from fakes.served import Served, serving
from fakes.uploads import drawn, file, opened, png_bomb

CAT = drawn(480, 640)
DEPLOYMENT = """
pipeline: images
workers:
  painter: {{stages: [painter]}}
  darkroom: {{stages: [pixels, developer]}}
stages:
  pixels: {{model: pixels, slots: 64}}
  painter: {{model: "fakes.plain_painter:PlainPainter", directory: "{folder}", slots: 64, options: {{step_ms: 2}}}}
  developer: {{model: developer, slots: 64}}
"""


pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def served(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Served]:
    folder = tmp_path_factory.mktemp("pictures")
    deployment = folder / "images.yaml"
    deployment.write_text(DEPLOYMENT.format(folder=folder))
    async with serving(deployment)() as server:
        await server.until("ready after")
        yield server


@pytest_asyncio.fixture(loop_scope="module")
async def client(served: Served) -> AsyncIterator[openai.AsyncOpenAI]:
    async with openai.AsyncOpenAI(base_url=f"{served.url}/v1", api_key="none", max_retries=0) as stock:
        yield stock


async def painted(client: openai.AsyncOpenAI, seed: int) -> tuple[int, ...]:
    answer = await client.images.generate(prompt="a cat", size="320x240", extra_body={"seed": seed, "steps": 4 + seed})
    assert answer.data is not None
    image = opened(base64.b64decode(answer.data[0].b64_json or ""))
    assert image.size == (320, 240)
    pixel = image.getpixel((5, 5))
    assert isinstance(pixel, tuple)
    return pixel


async def test_everybody_gets_their_own_and_what_is_wrong_hurts_nobody(client: openai.AsyncOpenAI) -> None:
    async def wrong(said: str, **fields: object) -> None:
        with pytest.raises(openai.BadRequestError, match=said):
            await client.images.generate(prompt="a cat", extra_body=fields)

    async def bomb() -> None:
        with pytest.raises(openai.BadRequestError, match="image: expected a picture of at most 50000000 pixels, got far more"):
            await client.images.edit(prompt="boom", image=("bomb.png", png_bomb(50_000, 50_000)))

    async def raising() -> None:
        with pytest.raises(openai.InternalServerError, match="told to"):
            await client.images.generate(prompt="raise")

    troubles = (
        wrong("steps: expected at most 200, got 999", steps=999),
        wrong("width: expected a multiple of 8 pixels, got 100", size="100x64"),
        wrong("sampler: expected none but the default", sampler="magic"),
        bomb(),
        raising(),
    )
    colours, *_ = await asyncio.gather(asyncio.gather(*(painted(client, seed) for seed in range(8))), *troubles)
    assert colours == [colour("a cat", seed) for seed in range(8)]
    assert await painted(client, 9) == colour("a cat", 9)


async def test_an_upload_comes_back_edited_with_previews(client: openai.AsyncOpenAI) -> None:
    stream = await client.images.edit(
        prompt="darker", image=("cat.png", file(CAT)), stream=True, partial_images=2, extra_body={"steps": 9}
    )
    events = [event async for event in stream]
    assert [event.type for event in events] == ["image_edit.partial_image"] * 2 + ["image_edit.completed"]
    shades = [np.asarray(opened(base64.b64decode(event.b64_json))).mean() for event in events]
    assert shades == sorted(shades)
    np.testing.assert_array_equal(np.asarray(opened(base64.b64decode(events[-1].b64_json))), CAT // 2)


async def test_the_model_is_listed_and_a_url_leads_to_its_picture(served: Served, client: openai.AsyncOpenAI) -> None:
    names = [model.id async for model in client.models.list()]
    assert names == ["antiphon-images", served.log.parent.name]
    answer = await client.images.generate(prompt="a cat", response_format="url", extra_body={"seed": 3})
    assert answer.data is not None
    assert answer.data[0].url is not None
    async with aiohttp.ClientSession() as http, http.get(answer.data[0].url) as picture:
        assert opened(await picture.read()).getpixel((0, 0)) == colour("a cat", 3)
