"""`/v1/videos` with the stock client and without."""

import asyncio
import base64
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import openai
import pytest
import pytest_asyncio

from engines.messages.to_gateway import ErrorKind
from engines.parameters import Development, Picture
from fakes.doors import Door
from fakes.edge import Edge, ServeEdge
from fakes.films import posted, told
from fakes.graph import FakeGraph
from fakes.uploads import drawn, file
from sessions.identity.key_ring import Grant
from sessions.jobs.settings import VideoSettings

pytestmark = pytest.mark.filterwarnings("ignore:The Sora API:DeprecationWarning")

EXTRAS = {"steps": 7, "guidance": 3.5, "seed": 11, "negative_prompt": "dogs", "frames": 5, "fps": 8}
CAT = file(drawn(48, 64))


@pytest_asyncio.fixture
async def edge(serve_edge: ServeEdge, tmp_path: Path) -> Edge:
    return await serve_edge(videos=VideoSettings(directory=str(tmp_path), most=6, most_of_tenant=4, at_once=2))


@pytest_asyncio.fixture
async def videos(edge: Edge) -> AsyncIterator[Any]:
    """Of the stock client, which calls them deprecated, and knows the sizes of OpenAI's own models alone."""
    async with openai.AsyncOpenAI(base_url=f"{edge.url}/v1", api_key="none", max_retries=0) as stock:
        yield stock.videos


async def made(videos: Any, **extras: object) -> Any:
    body = {"seed": 1, "frames": 3, "steps": 2} | extras
    return await videos.create_and_poll(prompt="a cat", size="64x48", extra_body=body, poll_interval_ms=10)


def kept_in(folder: Path) -> list[Path]:
    """Films, also unfinished ones."""
    return [path for path in folder.rglob("*") if path.is_file()]


# ── the stock client


async def test_the_stock_client_gets_its_film(videos: Any, graph: FakeGraph, tmp_path: Path) -> None:
    video = await videos.create_and_poll(model="director-1", prompt="a cat", size="96x64", extra_body=EXTRAS, poll_interval_ms=10)
    assert (video.status, video.progress, video.error) == ("completed", 100, None)
    assert (video.size, video.seconds, video.prompt, video.model) == ("96x64", "0.625", "a cat", "director-1")
    assert video.model_extra is not None
    assert {name: video.model_extra[name] for name in ("seed", "fps", "frames")} == {"seed": 11, "fps": 8, "frames": 5}
    assert video.completed_at is not None
    assert video.expires_at is not None
    assert video.created_at <= video.completed_at < video.expires_at
    [request] = graph.of("painter")
    assert request.parameters["painter"] == Picture(96, 64, 5, 7, 3.5, "dogs", "", 11)
    assert request.parameters["developer"] == Development(format="mp4", frames_per_s=8)
    content = await videos.download_content(video.id)
    assert content.response.headers["content-type"] == "video/mp4"
    film = await content.aread()
    assert film[4:8] == b"ftyp"
    [kept] = kept_in(tmp_path)
    assert (kept.read_bytes(), kept.stat().st_mode & 0o777) == (film, 0o600)


async def test_a_film_of_so_many_seconds(videos: Any, graph: FakeGraph) -> None:
    await videos.create(prompt="a cat", seconds="4", size="32x32")
    await graph.wait_for(lambda: bool(graph.of("painter")))
    [request] = graph.of("painter")
    picture = request.parameters["painter"]
    assert isinstance(picture, Picture)
    assert (picture.frames, picture.about_frames) == (64, True)


async def test_a_film_that_begins_with_a_picture(videos: Any, graph: FakeGraph) -> None:
    url = "data:image/png;base64," + base64.b64encode(CAT).decode()
    await videos.create_and_poll(
        prompt="a cat", input_reference=("cat.png", CAT, "image/png"), extra_body={"frames": 2}, poll_interval_ms=10
    )
    await made(videos, input_reference={"image_url": url})
    for request in graph.of("pixels"):
        whole = b"".join(bytes(each.arrays["image"].data) for each in graph.pushed[request.request_id] if each.arrays)
        assert whole == CAT
    assert len(graph.of("pixels")) == 2


async def test_it_is_queued_under_way_and_completed(videos: Any, graph: FakeGraph) -> None:
    gate = graph.hold("video")
    video = await videos.create(prompt="a cat", extra_body={"frames": 2, "steps": 4})
    assert (video.status, video.progress) == ("queued", 0)
    gate.step()  # the painter tells of its first step
    async with asyncio.timeout(5):
        while video.progress != 25:
            video = await videos.retrieve(video.id)
    assert video.status == "in_progress"
    with pytest.raises(openai.BadRequestError, match="in_progress: it has no content yet"):
        await videos.download_content(video.id)
    gate.release()
    done = await videos.poll(video.id, poll_interval_ms=10)
    assert (done.status, done.progress) == ("completed", 100)


async def test_all_are_listed_page_by_page(videos: Any) -> None:
    ids = [(await made(videos, seed=seed)).id for seed in range(4)]
    page = await videos.list(limit=3)
    assert [video.id for video in page.data] == ids[:0:-1]
    assert page.has_more
    assert [video.id async for video in videos.list(limit=1)] == ids[::-1]
    assert [video.id async for video in videos.list(limit=3, order="asc")] == ids
    older = await videos.list(after=ids[1])
    assert [video.id for video in older.data] == ids[:1]


async def test_deleting_stops_the_work(videos: Any, graph: FakeGraph, tmp_path: Path) -> None:
    gate = graph.hold("video")
    video = await videos.create(prompt="a cat", extra_body={"frames": 2})
    gate.step()
    await graph.wait_for(lambda: graph.open_requests == 1)
    deleted = await videos.delete(video.id)
    assert (deleted.id, deleted.deleted, deleted.object) == (video.id, True, "video.deleted")
    assert (graph.open_requests, graph.aborted) == (0, [video.id])
    assert not kept_in(tmp_path)
    for call in (videos.retrieve, videos.delete, videos.download_content):
        with pytest.raises(openai.NotFoundError):
            await call(video.id)


async def test_deleting_deletes_the_film(videos: Any, tmp_path: Path) -> None:
    video = await made(videos)
    assert kept_in(tmp_path)
    await videos.delete(video.id)
    assert not kept_in(tmp_path)


# ── what goes wrong


async def test_an_engine_that_fails_fails_the_job(videos: Any, graph: FakeGraph, tmp_path: Path) -> None:
    graph.fail("video", ErrorKind.ENGINE, message="the painter has spilt its paint")
    video = await made(videos)
    assert video.status == "failed"
    assert video.error is not None
    assert (video.error.code, video.completed_at) == ("engine", None)
    assert "spilt" in video.error.message
    assert not kept_in(tmp_path)
    with pytest.raises(openai.BadRequestError, match="has failed and has no content \\("):
        await videos.download_content(video.id)
    assert (await made(videos)).status == "completed", "the next one is served"


async def test_a_broken_picture_is_told_by_its_field(edge: Edge) -> None:
    form = aiohttp.FormData({"prompt": "a cat", "frames": "2"})
    form.add_field("input_reference", CAT[:60], filename="cat.png")
    async with edge.http.post(f"{edge.url}/v1/videos", data=form) as answer:
        video = await told(edge, (await answer.json())["id"], "failed")
    assert video["error"]["message"].startswith("input_reference: expected a picture as PNG, JPEG or WebP")
    assert (video["error"]["code"], video["error"]["param"]) == ("invalid", "input_reference")


async def test_no_more_than_may_be_kept(edge: Edge, graph: FakeGraph) -> None:
    graph.hold("video")
    ids = [(await posted(edge))["id"] for _ in range(4)]
    error = await posted(edge, status=429)
    assert (error["code"], "delete some" in error["message"]) == ("video_quota_reached", True)
    async with edge.http.delete(f"{edge.url}/v1/videos/{ids[0]}") as answer:
        assert answer.status == 200
    await posted(edge)


async def test_only_so_many_are_worked_on_at_once(edge: Edge, graph: FakeGraph) -> None:
    graph.hold("video")
    ids = [(await posted(edge, steps=2))["id"] for _ in range(3)]
    await told(edge, ids[1], "in_progress")
    assert len(graph.of("painter")) == 2
    assert (await told(edge, ids[2], "queued"))["progress"] == 0
    async with edge.http.delete(f"{edge.url}/v1/videos/{ids[0]}"):
        pass
    await graph.wait_for(lambda: len(graph.of("painter")) == 3)


# ── content


async def test_ranges_of_a_film(edge: Edge, videos: Any) -> None:
    url = f"{edge.url}/v1/videos/{(await made(videos)).id}/content"
    async with edge.http.get(url) as answer:
        whole, tag = await answer.read(), answer.headers["ETag"]
        assert (answer.status, answer.headers["Accept-Ranges"]) == (200, "bytes")
    size = len(whole)
    for asked, expected, span in (
        ("bytes=0-3", whole[:4], f"bytes 0-3/{size}"),
        ("bytes=4-", whole[4:], f"bytes 4-{size - 1}/{size}"),
        ("bytes=-7", whole[-7:], f"bytes {size - 7}-{size - 1}/{size}"),
        (f"bytes=10-{10 * size}", whole[10:], f"bytes 10-{size - 1}/{size}"),
        (f"bytes=0-{size - 1}", whole, f"bytes 0-{size - 1}/{size}"),
    ):
        async with edge.http.get(url, headers={"Range": asked, "If-Range": tag}) as answer:
            assert (answer.status, answer.headers["Content-Range"]) == (206, span)
            assert await answer.read() == expected
    async with edge.http.get(url, headers={"Range": f"bytes={size}-"}) as answer:
        assert (answer.status, answer.headers["Content-Range"]) == (416, f"bytes */{size}")
    for headers in (
        {"Range": "bytes=0-1,3-4"},
        {"Range": "lines=1-2"},
        {"Range": "bytes=5-2"},
        {"Range": "bytes=0-1", "If-Range": '"x"'},
    ):
        async with edge.http.get(url, headers=headers) as answer:
            assert (answer.status, await answer.read()) == (200, whole)
    async with edge.http.head(url) as answer:
        assert (answer.status, answer.headers["Content-Length"]) == (200, str(size))
    async with edge.http.get(url, params={"variant": "thumbnail"}) as answer:
        assert answer.status == 400


async def test_a_film_that_somebody_has_taken_away_is_gone(edge: Edge, videos: Any, tmp_path: Path) -> None:
    video = await made(videos)
    [kept] = kept_in(tmp_path)
    kept.unlink()
    async with edge.http.get(f"{edge.url}/v1/videos/{video.id}/content") as answer:
        assert (answer.status, (await answer.json())["error"]["code"]) == (410, "video_gone")


# ── tenants, nodes, the end


async def test_a_tenant_sees_its_own_alone(serve_edge: ServeEdge, tmp_path: Path) -> None:
    door = Door()
    keys = [(await door.ring.create(Grant(tenant=tenant))).text for tenant in ("acme", "other")]
    edge = await serve_edge(door=door, videos=VideoSettings(directory=str(tmp_path)))
    acme, other = ({"Authorization": f"Bearer {key}"} for key in keys)
    wish = {"prompt": "canary", "frames": 2}
    async with edge.http.post(f"{edge.url}/v1/videos", json=wish, headers=acme) as answer:
        job_id = (await answer.json())["id"]
    for method, path in (("GET", ""), ("DELETE", ""), ("GET", "/content")):
        async with edge.http.request(method, f"{edge.url}/v1/videos/{job_id}{path}", headers=other) as answer:
            assert (answer.status, "canary" in await answer.text()) == (404, False)
    for headers, count in ((acme, 1), (other, 0)):
        async with edge.http.get(f"{edge.url}/v1/videos", headers=headers) as answer:
            assert len((await answer.json())["data"]) == count
    async with edge.http.get(f"{edge.url}/v1/videos/{job_id}") as answer:
        assert answer.status == 401


async def test_the_film_of_another_host_is_told_to_be_there(serve_edge: ServeEdge, tmp_path: Path, graph: FakeGraph) -> None:
    first = await serve_edge(videos=VideoSettings(directory=str(tmp_path / "one")))
    same = await serve_edge(store=first.context.store, name="edge-2", videos=VideoSettings(directory=str(tmp_path / "one")))
    elsewhere = VideoSettings(directory=str(tmp_path / "two"))
    far = await serve_edge(store=first.context.store, name="far-1", host="far", videos=elsewhere)
    job_id = (await posted(first))["id"]
    await told(far, job_id, "completed")
    async with same.http.get(f"{same.url}/v1/videos/{job_id}/content") as answer:
        assert answer.status == 200
    async with far.http.get(f"{far.url}/v1/videos/{job_id}/content") as answer:
        error = (await answer.json())["error"]
        assert (answer.status, error["code"], "edge-1" in error["message"]) == (421, "video_elsewhere", True)
    async with far.http.delete(f"{far.url}/v1/videos/{job_id}") as answer:
        assert answer.status == 200
    async with asyncio.timeout(5):
        while kept_in(tmp_path):  # noqa: ASYNC110 (files ring no bell)
            await asyncio.sleep(0.005)


async def test_a_server_that_is_stopping_takes_none(edge: Edge) -> None:
    edge.context.drain.begin()
    assert (await posted(edge, status=503))["code"] == "server_draining"


async def test_frames_are_billed(edge: Edge) -> None:
    job_id = (await posted(edge, frames=7))["id"]
    await told(edge, job_id, "completed")
    async with asyncio.timeout(5):
        while not (bills := await edge.context.store.bills()):  # noqa: ASYNC110 (bills ring no bell)
            await asyncio.sleep(0)
    assert bills == {"local": {"frames": 7, "requests": 1}}
