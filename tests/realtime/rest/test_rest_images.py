"""`/v1/images/generations` and `/v1/images/edits` with the stock client and without."""

import asyncio
import base64
import io
import json
from typing import Any, TypeAlias

import aiohttp
import msgspec
import numpy as np
import openai
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image

from engines.messages.to_gateway import ErrorKind
from engines.parameters import Development, Picture
from fakes.edge import CATALOGUE, Edge, ServeEdge
from fakes.graph import FakeGraph
from fakes.painted import colour
from fakes.uploads import drawn, file, opened, png_bomb, webp_bomb
from realtime.metrics import Metrics

CAT = drawn(48, 64)
MAX_BODY_BYTES = 4 << 20


def body(**changes: object) -> dict[str, object]:
    return {"model": "painter-1", "prompt": "a cat", **changes}


async def refused(http: aiohttp.ClientSession, status: int = 400, **changes: Any) -> dict[str, Any]:
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


async def test_what_a_step_cache_saved_is_in_the_timing(edge: Edge, graph: FakeGraph) -> None:
    async def timing(**changes: object) -> dict[str, Any]:
        async with edge.http.post(f"{edge.url}/v1/images/generations", json=body(**changes)) as answer:
            assert answer.status == 200
            lines = (await answer.text()).splitlines()
        return json.loads([line.removeprefix("data: ") for line in lines if "metrics" in line][-1])["metrics"]

    assert "reused_calls" not in await timing()
    graph.painter_tells = {"computed_calls": 14, "reused_calls": 6}
    told = await timing(n=2)
    assert (told["computed_calls"], told["reused_calls"], told.get("psnr_db")) == (28, 12, None)
    assert told["total_ms"] > 0
    graph.painter_tells |= {"psnr_db": 41.5}
    assert (await timing(n=2))["psnr_db"] == (await timing(stream=True, partial_images=1))["psnr_db"] == 41.5


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


async def test_pictures_by_url_can_be_had_without_a_key(serve_edge: ServeEdge, graph: FakeGraph) -> None:
    edge = await serve_edge(api_key="secret")
    headers = {"Authorization": "Bearer secret"}
    wish = body(response_format="url", output_format="webp", seed=3, n=2)
    async with edge.http.post(f"{edge.url}/v1/images/generations", json=wish, headers=headers) as answer:
        urls = [image["url"] for image in (await answer.json())["data"]]
    assert len(set(urls)) == 2
    for url in urls:
        assert url.startswith(f"{edge.url}/pictures/pic_")
        async with edge.http.get(url, headers={"Origin": "https://else.where", "Sec-Fetch-Site": "cross-site"}) as answer:
            assert (answer.status, answer.content_type) == (200, "image/webp")
            assert opened(await answer.read()).size == (64, 64)
            assert "immutable" in answer.headers["Cache-Control"]


async def test_names_of_pictures_are_in_no_log(edge: Edge, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("DEBUG"):
        async with edge.http.post(f"{edge.url}/v1/images/generations", json=body(response_format="url")) as answer:
            [image] = (await answer.json())["data"]
        async with edge.http.get(image["url"]) as answer:
            assert answer.status == 200
    assert "GET /pictures/… 200" in caplog.text
    assert image["url"].rpartition("/")[2] not in caplog.text


async def test_a_url_that_nobody_was_given_leads_nowhere(edge: Edge) -> None:
    async with edge.http.get(f"{edge.url}/pictures/pic_{'0' * 48}.png") as answer:
        assert (answer.status, (await answer.json())["error"]["code"]) == (404, "picture_not_found")
    async with edge.http.get(f"{edge.url}/pictures/", headers={"Host": "evil.example"}) as answer:
        assert answer.status == 403


@pytest.mark.parametrize(
    ("changes", "field", "said"),
    [
        ({"prompt": " \u200b"}, "prompt", "expected what to paint"),
        ({"prompt": "x" * 32_001}, "prompt", "expected at most 32000 characters, got '32001 characters'"),
        ({"prompt": 3}, "prompt", "expected str, got 3"),
        ({"negative_prompt": "x" * 32_001}, "negative_prompt", "expected at most 32000 characters"),
        ({"size": "big"}, "size", "expected 'auto' or 'WIDTHxHEIGHT' in pixels, such as '1024x768', got 'big'"),
        ({"size": "1024x"}, "size", "expected 'auto' or"),
        ({"size": "0x64"}, "size", "expected 'auto' or"),
        ({"size": "８x８"}, "size", "expected 'auto' or"),
        ({"size": "8x64"}, "size", "expected 16 to 8192 pixels a side, got '8x64'"),
        ({"size": "8192x8192"}, "size", "expected at most 8388608 pixels, got '8192x8192'"),
        ({"size": "1" * 5_000 + "x1"}, "size", "expected 'auto' or"),
        ({"steps": 0}, "steps", "expected int >= 1, got 0"),
        ({"steps": 10**6}, "steps", "expected int <= 1000, got 1000000"),
        ({"steps": 2.5}, "steps", "expected int"),
        ({"steps": 101}, "steps", "expected at most 100, got 101"),
        ({"guidance": -1}, "guidance", "expected float >= 0.0, got -1"),
        ({"guidance": "warm"}, "guidance", "expected float"),
        ({"seed": -1}, "seed", "expected int >= 0, got -1"),
        ({"seed": 2**63}, "seed", "expected int <= 9223372036854775807"),
        ({"strength": 0}, "strength", "expected float > 0.0, got 0"),
        ({"strength": 1.01}, "strength", "expected float <= 1.0, got 1.01"),
        ({"n": 0}, "n", "expected int >= 1, got 0"),
        ({"n": 11}, "n", "expected int <= 10, got 11"),
        ({"output_format": "svg"}, "output_format", "expected 'png' or 'jpeg' or 'webp', got 'svg'"),
        ({"output_compression": 50}, "output_compression", "expected none, or 100, with png"),
        ({"output_compression": 101, "output_format": "webp"}, "output_compression", "expected int <= 100, got 101"),
        ({"response_format": "file"}, "response_format", "expected 'b64_json' or 'url', got 'file'"),
        ({"background": "transparent"}, "background", "pictures here have no transparency, got 'transparent'"),
        ({"quality": "hd"}, "quality", "`steps` says how long is painted, got 'hd'"),
        ({"style": "vivid"}, "style", "expected nothing (the prompt says it), got 'vivid'"),
        ({"num_inference_steps": 4}, "num_inference_steps", "expected nothing (it is called `steps` here), got 4"),
        ({"num_images_per_prompt": 2}, "num_images_per_prompt", "expected nothing (it is called `n` here), got 2"),
        ({"width": 64}, "width", "expected nothing (it is called `size` here), got 64"),
        ({"frame_count": 4}, "frame_count", "expected nothing (pictures that move are films"),
        ({"stream": True, "n": 2}, "n", "expected 1 with stream, got 2"),
        ({"stream": True, "response_format": "url"}, "response_format", "expected 'b64_json' with stream, got 'url'"),
        ({"partial_images": 1}, "partial_images", "expected 0 without stream, got 1"),
        ({"stream": True, "partial_images": 4}, "partial_images", "expected int <= 3, got 4"),
    ],
)
async def test_what_is_wrong_is_named_and_the_next_is_served(
    http: aiohttp.ClientSession, changes: dict[str, Any], field: str, said: str
) -> None:
    error = await refused(http, **changes)
    assert error["param"] == field
    assert error["message"].startswith(f"{field}: expected ")
    assert said in error["message"]
    async with http.post("/v1/images/generations", json=body()) as answer:
        assert answer.status == 200


@pytest.mark.parametrize("accepted", ["auto", None, "opaque"])
async def test_what_changes_nothing_is_accepted(http: aiohttp.ClientSession, accepted: str | None) -> None:
    wish = body(background=accepted, quality="auto", moderation="low", user="u", safety_identifier="s", size=None, model=None)
    async with http.post("/v1/images/generations", json=wish) as answer:
        assert answer.status == 200, await answer.text()


async def test_another_model_is_refused_with_those_there_are(http: aiohttp.ClientSession) -> None:
    error = await refused(http, 404, model="gpt-image-9")
    assert error["message"] == "model: expected painter-1 or antiphon-images for pictures, got 'gpt-image-9'"


async def test_where_nothing_paints_that_is_said(serve_edge: ServeEdge) -> None:
    edge = await serve_edge(catalogue=msgspec.structs.replace(CATALOGUE, pictures=()))
    async with aiohttp.ClientSession(edge.url) as http:
        for model in (None, "painter-1"):
            assert (await refused(http, 404, model=model))["message"] == "model: nothing here paints pictures"


async def test_a_prompt_of_a_megabyte_is_refused_at_once(http: aiohttp.ClientSession) -> None:
    text = json.dumps({"prompt": " " * (1 << 20)}).encode()
    async with http.post("/v1/images/generations", data=io.BytesIO(text)) as answer:
        assert (await answer.json())["error"]["message"].startswith("prompt: expected at most 32000 characters")


@pytest.mark.parametrize(
    "text",
    ['{"prompt": "a", "guidance": NaN}', '{"prompt": "a", "guidance": Infinity}', "[" * 10_000, "", '{"prompt": "\\ud800"}'],
)
async def test_what_is_no_json_is_refused(http: aiohttp.ClientSession, text: str) -> None:
    async with http.post("/v1/images/generations", data=text, headers={"Content-Type": "application/json"}) as answer:
        assert answer.status == 400


Part: TypeAlias = bytes | str | int | list[bytes] | list[int]


def form(**parts: Part) -> aiohttp.FormData:
    data = aiohttp.FormData({"model": "painter-1", "prompt": "darker"}, default_to_multipart=True)
    for name, value in parts.items():
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, bytes):
                data.add_field(name, io.BytesIO(each), filename="file")
            else:
                data.add_field(name, str(each))
    return data


async def refused_edit(http: aiohttp.ClientSession, status: int = 400, **parts: Any) -> dict[str, Any]:
    async with http.post("/v1/images/edits", data=form(**parts)) as answer:
        assert answer.status == status, await answer.text()
        return (await answer.json())["error"]


@pytest.mark.parametrize(
    ("parts", "field", "said"),
    [
        ({}, "image", "image: expected a picture, got none"),
        ({"image": b"no picture"}, "image", "image: expected a picture as PNG, JPEG or WebP, got something else"),
        ({"image": b""}, "image", "image: expected a picture as PNG, JPEG or WebP, got something else"),
        ({"image": "a text"}, "image", "image: expected a picture as PNG, JPEG or WebP, got something else"),
        ({"image": png_bomb(30_000, 30_000)}, "image", "image: expected a picture of at most 50000000 pixels, got far more"),
        ({"image": png_bomb(9_000, 9_000)}, "image", "image: expected a picture of at most 50000000 pixels, got 9000 x 9000"),
        ({"image": webp_bomb()}, "image", "image: expected a picture of at most 50000000 pixels, got far more"),
        ({"image[]": [file(CAT), b"GIF89a"]}, "image[1]", "image[1]: expected a picture as PNG, JPEG or WebP"),
        ({"image": file(CAT), "mask": file(CAT[:-1])}, "mask", "mask: expected the size of the picture, 64 x 48, got 64 x 47"),
        ({"image": file(CAT), "mask": [file(CAT), file(CAT)]}, "mask", "mask: expected one file, got 'a second one'"),
        ({"image": [file(CAT)] * 17}, "image", "image: expected at most 16 files, got 'more'"),
        ({"image": file(CAT), "guidance": "nan"}, "guidance", "guidance: expected float >= 0.0, got 'nan'"),
        ({"image": file(CAT), "strength": "inf"}, "strength", "strength: expected float <= 1.0, got 'inf'"),
        ({"image": file(CAT), "steps": "many"}, "steps", "steps: expected int | null, got 'many'"),
        ({"image": file(CAT), "steps": 10**6}, "steps", "steps: expected int <= 1000, got '1000000'"),
        ({"image": file(CAT), "guidance": "1e999"}, "guidance", "guidance: expected a number that can be held, got one out"),
        ({"image": file(CAT), "steps": "9" * 5_000}, "steps", "steps: expected a number that can be held, got one out"),
        ({"image": file(CAT), "steps": [3, 4]}, "steps", "steps: expected one value, got 'a second one'"),
        ({"image": file(CAT), "sampler": b"\xff"}, "sampler", "sampler: expected text in UTF-8, got b'\\xff'"),
        ({"image[x]": file(CAT)}, "image[x]", "image[x]: expected text in UTF-8, got b'\\x89PNG"),
        ({"image": file(CAT), "input_fidelity": "high"}, "input_fidelity", "input_fidelity: expected nothing (`strength` says"),
    ],
)
async def test_wrong_forms_are_named_and_the_next_is_served(
    http: aiohttp.ClientSession, parts: dict[str, Any], field: str, said: str
) -> None:
    error = await refused_edit(http, **parts)
    assert error["param"] == field
    assert error["message"].startswith(said)
    async with http.post("/v1/images/edits", data=form(image=file(CAT))) as answer:
        assert answer.status == 200, await answer.text()


async def test_a_file_that_is_too_large_is_refused(http: aiohttp.ClientSession) -> None:
    error = await refused_edit(http, 413, image=bytes(MAX_BODY_BYTES - 1_000), mask=bytes(2_000))
    assert (error["param"], error["code"]) == ("mask", "file_too_large")


async def test_large_files_reach_the_engines_in_pieces(http: aiohttp.ClientSession, graph: FakeGraph) -> None:
    noise = drawn(800, 960)
    async with http.post("/v1/images/edits", data=form(image=file(noise))) as answer:
        [image] = (await answer.json())["data"]
    np.testing.assert_array_equal(np.asarray(opened(base64.b64decode(image["b64_json"]))), noise // 2)
    [request] = graph.of("pixels")
    sizes = [payload.nbytes for payload in graph.pushed[request.request_id]]
    assert len(sizes) > 4
    assert max(sizes) <= 512 << 10


FIELDS = ("prompt", "size", "n", "steps", "guidance", "seed", "strength", "stream", "partial_images", "output_format", "quality")
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(fields=st.dictionaries(st.sampled_from(FIELDS), JSON, min_size=1))
async def test_bad_bodies_are_refused_by_name_or_served(http: aiohttp.ClientSession, fields: dict[str, object]) -> None:
    async with http.post("/v1/images/generations", json=body(**fields)) as answer:
        assert answer.status in (200, 400), await answer.text()
        if answer.status == 400:
            error = (await answer.json())["error"]
            assert error["message"].startswith(f"{error['param']}: expected ")
            assert error["param"].partition(".")[0] in FIELDS
        else:
            await answer.read()


async def test_a_failure_before_the_first_event_is_an_error_response(http: aiohttp.ClientSession, graph: FakeGraph) -> None:
    graph.fail("image", ErrorKind.OVERLOADED)
    error = await refused(http, 503, stream=True)
    assert error["code"] == "overloaded"


async def test_a_failure_after_it_is_told_in_the_stream(client: openai.AsyncOpenAI, graph: FakeGraph) -> None:
    graph.fail("image", after=2)
    stream = await client.images.generate(model="painter-1", prompt="a cat", stream=True, partial_images=1)
    assert (await anext(stream)).type == "image_generation.partial_image"
    with pytest.raises(openai.APIError, match="scripted"):
        await anext(stream)


async def test_one_failure_of_several_is_that_of_all(http: aiohttp.ClientSession, graph: FakeGraph, edge: Edge) -> None:
    graph.fail("image")
    assert (await refused(http, 500, n=3))["code"] == "engine"
    await edge.idle()


async def test_who_leaves_stops_the_work(edge: Edge, graph: FakeGraph) -> None:
    graph.hold("image")
    async with aiohttp.ClientSession() as other:
        asking = asyncio.create_task(other.post(f"{edge.url}/v1/images/generations", json=body(n=2)).__aenter__())
        await graph.wait_for(lambda: graph.open_requests == 2)
        asking.cancel()
    await edge.idle()
    assert len(graph.aborted) == 2


async def test_every_answer_says_where_its_time_went(http: aiohttp.ClientSession, metrics: Metrics) -> None:
    async with http.post("/v1/images/generations", json=body(n=2)) as answer:
        assert "painter;dur=4.0" in answer.headers["Server-Timing"]
        whole = await answer.json()
    assert whole["metrics"]["stages"]["painter"]["run_ms"] == 4.0
    assert whole["usage"]["pictures"] == 2
    await refused(http, n=0)
    text = metrics.text({}).decode()
    for outcome in ("completed", "refused"):
        assert f'antiphon_requests_total{{outcome="{outcome}",source="images"}} 1.0' in text
