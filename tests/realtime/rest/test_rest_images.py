"""`/v1/images/generations` and `/v1/images/edits` with the stock client and without."""

import base64
from typing import Any

import aiohttp
import numpy as np
import openai
import pytest
from PIL import Image

from engines.parameters import Development, Picture
from fakes.graph import FakeGraph
from fakes.painted import colour
from fakes.uploads import drawn, file, opened

CAT = drawn(48, 64)


def body(**changes: object) -> dict[str, object]:
    return {"model": "painter-1", "prompt": "a cat", **changes}


async def refused(http: aiohttp.ClientSession, status: int = 400, **changes: object) -> dict[str, Any]:
    async with http.post("/v1/images/generations", json=body(**changes)) as answer:
        assert answer.status == status, await answer.text()
        return (await answer.json())["error"]


def seen(image: Any) -> Image.Image:
    return opened(base64.b64decode(image.b64_json))


async def test_the_stock_client_gets_its_picture(client: openai.AsyncOpenAI, graph: FakeGraph) -> None:
    extras = {"steps": 7, "guidance": 3.5, "seed": 11, "negative_prompt": "dogs", "sampler": "euler", "strength": 0.5}
    answer = await client.images.generate(model="painter-1", prompt="a cat", size="96x64", extra_body=extras)
    assert answer.data is not None
    [image] = answer.data
    assert seen(image).size == (96, 64)
    assert seen(image).getpixel((0, 0)) == colour("a cat", 11)
    assert (answer.size, answer.output_format, answer.background) == ("96x64", "png", "opaque")
    [request] = graph.of("painter")
    assert request.parameters["painter"] == Picture(96, 64, None, 7, 3.5, "dogs", "euler", 11, 0.5)


async def test_several_have_seeds_that_follow_one_another(client: openai.AsyncOpenAI) -> None:
    answer = await client.images.generate(model="painter-1", prompt="a cat", n=3, extra_body={"seed": 2**63 - 2})
    assert answer.data is not None
    seeds = [2**63 - 2, 2**63 - 1, 0]
    assert [seen(image).getpixel((0, 0)) for image in answer.data] == [colour("a cat", seed) for seed in seeds]
    assert [image.model_extra for image in answer.data] == [{"seed": seed} for seed in seeds]


async def test_without_a_seed_each_is_another(client: openai.AsyncOpenAI, graph: FakeGraph) -> None:
    for _ in range(2):
        await client.images.generate(model="painter-1", prompt="a cat")
    one, other = (request.parameters["painter"] for request in graph.of("painter"))
    assert one != other


@pytest.mark.parametrize("format", ["png", "jpeg", "webp"])
async def test_each_format_is_what_it_says(client: openai.AsyncOpenAI, graph: FakeGraph, format: Any) -> None:
    compression = 100 if format == "png" else 60
    answer = await client.images.generate(model="painter-1", prompt="a cat", output_format=format, output_compression=compression)
    assert answer.data is not None
    assert (seen(answer.data[0]).format, answer.output_format) == (format.upper(), format)
    [request] = graph.of("painter")
    assert request.parameters["developer"] == Development(format, compression, as_base64=True)


async def test_previews_and_the_picture_are_streamed(client: openai.AsyncOpenAI) -> None:
    stream = await client.images.generate(model="painter-1", prompt="a cat", stream=True, partial_images=2)
    events = [event async for event in stream]
    assert [event.type for event in events] == ["image_generation.partial_image"] * 2 + ["image_generation.completed"]
    assert [event.partial_image_index for event in events if event.type == "image_generation.partial_image"] == [0, 1]
    assert all(seen(event).getpixel((0, 0)) == (128, 128, 128) for event in events[:2])
    assert seen(events[2]).getpixel((0, 0)) != (128, 128, 128)
    assert all((event.size, event.output_format) == ("64x64", "png") for event in events)
    assert events[2].type == "image_generation.completed"
    assert events[2].usage.total_tokens == 0


async def test_edits_begin_with_the_upload(client: openai.AsyncOpenAI, graph: FakeGraph) -> None:
    answer = await client.images.edit(
        model="painter-1",
        prompt="darker",
        image=("cat.png", file(CAT)),
        mask=("mask.png", file(CAT[:, :, 0])),
        extra_body={"strength": 0.4, "steps": 9},
    )
    assert answer.data is not None
    np.testing.assert_array_equal(np.asarray(seen(answer.data[0])), CAT // 2)
    [request] = graph.of("pixels")
    picture = request.parameters["painter"]
    assert isinstance(picture, Picture)
    assert (picture.strength, picture.steps) == (0.4, 9)
    names = {name for payload in graph.pushed[request.request_id] for name in payload.arrays}
    assert names == {"image", "mask"}


async def test_several_pictures_can_be_edited_and_streamed(client: openai.AsyncOpenAI, graph: FakeGraph) -> None:
    images = [("a.png", file(CAT)), ("b.webp", file(CAT, "WEBP")), ("c.jpg", file(CAT, "JPEG"))]
    stream = await client.images.edit(model="painter-1", prompt="join", image=images, stream=True, partial_images=1)
    assert [event.type async for event in stream] == ["image_edit.partial_image", "image_edit.completed"]
    [request] = graph.of("pixels")
    names = [name for payload in graph.pushed[request.request_id] for name in payload.arrays]
    assert list(dict.fromkeys(names)) == ["image", "image[1]", "image[2]"]
