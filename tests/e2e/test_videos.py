"""Films from a whole server: stock client, gateway, workers with the real stages around a painter without networks."""

import asyncio
import os
import re
import sys
import time
from collections.abc import AsyncIterator
from io import BytesIO
from pathlib import Path
from typing import Any, cast

import aiohttp
import av
import numpy as np
import openai
import pytest
import pytest_asyncio
from numpy.typing import NDArray

from fakes.painted import colour
from fakes.redis_server import running_redis
from fakes.served import Served, serving
from fakes.uploads import png_bomb

STEP_MS = 20
DEPLOYMENT = """
pipeline: videos
store: {{url: "{store}", lease_s: 2, settle_s: 0}}
videos: {{directory: films}}
workers:
  painter: {{stages: [painter]}}
  darkroom: {{stages: [pixels, developer]}}
stages:
  pixels: {{model: pixels, slots: 8}}
  painter: {{model: "fakes.plain_painter:PlainPainter", directory: "{folder}", slots: 8, options: {{step_ms: {step_ms}}}}}
  developer: {{model: developer, slots: 8}}
"""

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.filterwarnings("ignore:The Sora API:DeprecationWarning"),
]


def deployed(folder: Path, store: str = "memory://") -> Path:
    file = folder / "videos.yaml"
    file.write_text(DEPLOYMENT.format(folder=folder, store=store, step_ms=STEP_MS))
    return file


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def served(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Served]:
    async with serving(deployed(tmp_path_factory.mktemp("videos")))() as server:
        await server.until("ready after")
        yield server


@pytest_asyncio.fixture(loop_scope="module")
async def videos(served: Served) -> AsyncIterator[Any]:
    async with openai.AsyncOpenAI(base_url=f"{served.url}/v1", api_key="none", max_retries=0) as stock:
        yield stock.videos


def decoded(film: bytes) -> tuple[list[NDArray[np.uint8]], float]:
    """Its frames, RGB, and how many a second."""
    with cast(Any, av).open(BytesIO(film)) as shown:
        frames = [frame.to_ndarray(format="rgb24") for frame in shown.decode(video=0)]
        return frames, float(shown.streams.video[0].average_rate)


async def painted_steps(served: Served) -> int:
    async with aiohttp.ClientSession() as http, http.get(f"{served.url}/metrics") as answer:
        found = re.search(r'antiphon_stage_steps_total{stage="painter",[^}]*} ([0-9.]+)', await answer.text())
    assert found is not None
    return int(float(found[1]))


async def under_way(videos: Any, job_id: str) -> Any:
    async with asyncio.timeout(20):
        while (video := await videos.retrieve(job_id)).progress in (0, 100):  # noqa: ASYNC110 (HTTP rings no bell)
            await asyncio.sleep(0.02)
    return video


async def test_a_film_comes_out_while_others_fail(videos: Any) -> None:
    async def wrong(said: str, **fields: object) -> None:
        video = await videos.create_and_poll(prompt="a cat", extra_body={"frames": 2, **fields}, poll_interval_ms=20)
        assert video.status == "failed"
        assert said in video.error.message

    async def bomb() -> None:
        reference = ("bomb.png", png_bomb(50_000, 50_000), "image/png")
        video = await videos.create_and_poll(prompt="boom", input_reference=reference, poll_interval_ms=20)
        assert (video.status, video.error.param) == ("failed", "input_reference")

    async def film(seed: int) -> None:
        extras = {"frames": 9, "fps": 4, "seed": seed, "steps": 3 + seed}
        video = await videos.create_and_poll(prompt="a cat", size="64x48", extra_body=extras, poll_interval_ms=20)
        content = await (await videos.download_content(video.id)).aread()
        frames, rate = decoded(content)
        assert (len(frames), {frame.shape for frame in frames}, rate) == (9, {(48, 64, 3)}, 4)
        np.testing.assert_allclose(frames[4][24, 32], colour("a cat", seed), atol=12)

    await asyncio.gather(
        *(film(seed) for seed in range(4)),
        wrong("steps: expected at most 200, got 999", steps=999),
        wrong("width: expected a multiple of 8 pixels, got 100", size="100x64"),
        wrong("told to", prompt="raise"),
        bomb(),
    )


async def test_deleting_a_job_stops_its_steps(served: Served, videos: Any) -> None:
    video = await videos.create(prompt="a cat", extra_body={"frames": 2, "steps": 200})
    seen = await under_way(videos, video.id)
    assert seen.status == "in_progress"
    assert 0 < seen.progress < 100
    await videos.delete(video.id)
    await asyncio.sleep((STEP_MS + 20) / 1000)
    steps = await painted_steps(served)
    await asyncio.sleep(5 * STEP_MS / 1000)
    assert await painted_steps(served) == steps
    with pytest.raises(openai.NotFoundError):
        await videos.retrieve(video.id)


@pytest.mark.full
@pytest.mark.timeout(120)
async def test_a_node_that_is_killed_has_lost_its_jobs_and_another_one_says_so(tmp_path: Path) -> None:
    async with running_redis(tmp_path / "redis") as redis:
        deployment = deployed(tmp_path, redis.url)
        async with serving(deployment)() as first, serving(deployment)() as second, aiohttp.ClientSession() as http:
            for server in (first, second):
                await server.until("ready after")
            wish = {"prompt": "a cat", "frames": 2, "steps": 200}
            async with http.post(f"{first.url}/v1/videos", json=wish) as answer:
                job_id = (await answer.json())["id"]
            for url in (first.url, second.url):
                await until_told(http, f"{url}/v1/videos/{job_id}", "in_progress")
            first.process.kill()
            began = time.monotonic()
            video = await until_told(http, f"{second.url}/v1/videos/{job_id}", "failed")
            assert video["error"]["code"] == "node_lost"
            assert time.monotonic() - began < 2 + 1
            async with http.delete(f"{second.url}/v1/videos/{job_id}") as answer:
                assert answer.status == 200


@pytest.mark.full
@pytest.mark.timeout(240)
async def test_a_folder_of_wan_is_a_model(tmp_path: Path) -> None:
    making = "from pathlib import Path; from fakes.tiny_pipelines import save, wan; save(wan, Path({!r}))"
    folder = tmp_path / "tiny-wan"
    program = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", making.format(str(folder))), env=os.environ | {"PYTHONPATH": "tests:."}
    )
    assert await program.wait() == 0
    deployment = tmp_path / "wan.yaml"
    deployment.write_text("diffusers: ./tiny-wan\nvideos: {directory: films}\n")
    async with serving(deployment)() as server, aiohttp.ClientSession() as http:
        async with asyncio.timeout(180):
            await server.until("ready after")
        wish = {"model": "tiny-wan", "prompt": "a cat", "frames": 5, "steps": 3, "size": "32x32", "seed": 7}
        films: list[bytes] = []
        for _ in range(2):
            async with http.post(f"{server.url}/v1/videos", json=wish) as answer:
                url = f"{server.url}/v1/videos/{(await answer.json())['id']}"
            assert (await until_told(http, url, "completed"))["frames"] == 5
            async with http.get(f"{url}/content") as answer:
                films.append(await answer.read())
        assert films[0] == films[1], "the same seed, the same film"
        assert len(decoded(films[0])[0]) == 5


async def until_told(http: aiohttp.ClientSession, url: str, status: str) -> dict[str, Any]:
    async with asyncio.timeout(20):
        while True:
            async with http.get(url) as answer:
                video = await answer.json()
            if video["status"] == status:
                return video
            await asyncio.sleep(0.05)
