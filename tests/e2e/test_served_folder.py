"""A folder in diffusers layout, served by one line: a tiny pipeline of random weights behind a whole server."""

import asyncio
import base64
from collections.abc import AsyncIterator
from pathlib import Path

import numpy as np
import openai
import pytest
import pytest_asyncio

from fakes import tiny_pipelines
from fakes.served import Served, serving
from fakes.uploads import drawn, file, opened

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.fixture(scope="module")
def deployment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("served")
    tiny_pipelines.save(tiny_pipelines.stable_diffusion, folder / "tiny-painter")
    deployment = folder / "mine.yaml"
    deployment.write_text("diffusers: ./tiny-painter\n")
    return deployment


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def served(deployment: Path) -> AsyncIterator[Served]:
    async with serving(deployment)() as server:
        await server.until("ready after")
        yield server


@pytest_asyncio.fixture(loop_scope="module")
async def client(served: Served) -> AsyncIterator[openai.AsyncOpenAI]:
    async with openai.AsyncOpenAI(base_url=f"{served.url}/v1", api_key="none", max_retries=0) as stock:
        yield stock


async def painted(client: openai.AsyncOpenAI, size: str, steps: int, seed: int) -> bytes:
    answer = await client.images.generate(prompt="a heron", size=size, extra_body={"steps": steps, "seed": seed})
    assert answer.data is not None
    picture = base64.b64decode(answer.data[0].b64_json or "")
    assert f"{opened(picture).width}x{opened(picture).height}" == size
    return picture


async def test_sizes_and_steps_of_all_kinds_are_served_at_once_and_are_the_same_as_alone(client: openai.AsyncOpenAI) -> None:
    wishes = [("64x64", 4, 1), ("32x48", 6, 2), ("64x64", 5, 3), ("64x64", 4, 1), ("48x32", 3, 4)]
    together = await asyncio.gather(*(painted(client, *wish) for wish in wishes))
    alone = [await painted(client, *wish) for wish in wishes]
    assert distance(together[0], together[3]) <= 1
    assert max(map(distance, together, alone)) <= 1


def distance(one: bytes, other: bytes) -> int:
    """The largest difference of any value: a batch may round otherwise."""
    values = (np.asarray(opened(picture), np.int16) for picture in (one, other))
    return int(np.abs(np.subtract(*values)).max())


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"size": "65x64"}, "size"),
        ({"size": "8192x1024"}, "size"),
        ({"steps": 999}, "steps"),
        ({"sampler": "magic"}, "sampler"),
        ({"strength": 0.5}, "strength"),
    ],
)
async def test_what_it_cannot_paint_is_named_and_the_next_is_served(
    client: openai.AsyncOpenAI, fields: dict[str, object], param: str
) -> None:
    with pytest.raises(openai.BadRequestError) as refused:
        await client.images.generate(prompt="a heron", extra_body=fields)
    assert refused.value.param == param
    await painted(client, "32x32", 2, 0)


async def test_uploads_are_edited_by_networks_that_paint_from_prompts(client: openai.AsyncOpenAI) -> None:
    upload = ("a.png", file(drawn(32, 48)))
    mask = ("mask.png", file(np.zeros((32, 48), np.uint8)))
    fields = {"steps": 4, "strength": 0.5, "seed": 3}
    two = await client.images.edit(prompt="a heron", image=upload, n=2, extra_body=fields)
    masked = await client.images.edit(prompt="a heron", image=upload, mask=mask, extra_body=fields)
    assert [image.model_extra for image in two.data or []] == [{"seed": 3}, {"seed": 4}]
    pictures = [base64.b64decode(image.b64_json or "") for answer in (two, masked) for image in answer.data or []]
    assert [opened(picture).size for picture in pictures] == [(48, 32)] * 3
    assert min(distance(pictures[0], pictures[1]), distance(pictures[0], pictures[2])) > 1


async def test_its_name_is_that_of_the_folder(client: openai.AsyncOpenAI) -> None:
    assert [model.id async for model in client.models.list()] == ["antiphon-images", "tiny-painter"]


async def test_its_log_has_no_progress_bars_and_no_advice_of_libraries(served: Served) -> None:
    log = served.log.read_text()
    assert "painter: reading tiny-painter, " in log
    assert not [word for word in ("it/s]", "%|", "torchvision") if word in log]
