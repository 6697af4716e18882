"""What is no wish for a film: refused by the name of its field, whatever comes."""

import base64
from pathlib import Path

import aiohttp
import pytest
import pytest_asyncio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fakes.edge import Edge, ServeEdge
from fakes.films import posted
from fakes.graph import FakeGraph
from sessions.jobs.settings import VideoSettings

FIELDS = ("prompt", "model", "size", "seconds", "fps", "frames", "steps", "guidance", "seed", "negative_prompt", "sampler",
          "strength", "input_reference")  # fmt: skip
ANYTHING = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=20)
JSON = st.recursive(ANYTHING, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3))


@pytest_asyncio.fixture
async def edge(serve_edge: ServeEdge, tmp_path: Path) -> Edge:
    return await serve_edge(videos=VideoSettings(directory=str(tmp_path), most=6, most_of_tenant=4))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("prompt", ""),
        ("prompt", "x" * 32_001),
        ("prompt", None),
        ("seconds", "0"),
        ("seconds", "-4"),
        ("seconds", "four"),
        ("seconds", "1e9"),
        ("seconds", "nan"),
        ("seconds", []),
        ("frames", 1),
        ("frames", 1_001),
        ("num_frames", 81),
        ("num_inference_steps", 30),
        ("fps", 0),
        ("fps", 61),
        ("size", "0x64"),
        ("size", "64"),
        ("size", "99999x99999"),
        ("size", "２x２"),
        ("steps", 0),
        ("steps", 10**6),
        ("guidance", -1),
        ("seed", -1),
        ("sampler", "x" * 600_000),
        ("model", "sora-2"),
        ("input_reference", "a cat"),
        ("input_reference", {"image_url": "https://example.org/cat.png"}),
        ("input_reference", {"image_url": "data:image/png;base64,@@"}),
        ("input_reference", {"image_url": "data:image/png;base64," + base64.b64encode(b"no picture").decode()}),
        ("input_reference", {"file_id": "file-1"}),
    ],
)
async def test_a_bad_field_is_named(edge: Edge, graph: FakeGraph, field: str, value: object) -> None:
    error = await posted(edge, status=404 if field == "model" else 400, **{field: value})
    assert error["param"].startswith(field), error
    assert not graph.requests


async def test_seconds_and_frames_and_too_much_of_both(edge: Edge) -> None:
    assert (await posted(edge, status=400, seconds="4", frames=64))["param"] == "frames"
    assert "pixels in all frames" in (await posted(edge, status=400, size="2048x2048", frames=1_000))["message"]


@pytest.mark.parametrize("query", ["limit=0", "limit=101", "limit=x", "limit=9999999999", "order=up", "after=a%20b", "after=%00"])
async def test_a_bad_page_is_refused(edge: Edge, query: str) -> None:
    async with edge.http.get(f"{edge.url}/v1/videos?{query}") as answer:
        assert (answer.status, (await answer.json())["error"]["param"]) == (400, query.partition("=")[0])


@pytest.mark.parametrize("job_id", ["video_1", "..%2F..%2Fetc", "a%00b", "x" * 300, "%F0%9F%90%88"])
async def test_an_unknown_one_is_not_found(edge: Edge, job_id: str) -> None:
    for method, path in (("GET", ""), ("DELETE", ""), ("GET", "/content")):
        async with edge.http.request(method, f"{edge.url}/v1/videos/{job_id}{path}") as answer:
            assert answer.status == 404


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(fields=st.dictionaries(st.sampled_from(FIELDS), JSON, min_size=1))
async def test_bad_bodies_are_refused_by_name_or_taken(edge: Edge, fields: dict[str, object]) -> None:
    async with edge.http.post(f"{edge.url}/v1/videos", json={"prompt": "a cat", **fields}) as answer:
        outcome = await answer.json()
        if answer.status == 200:
            async with edge.http.delete(f"{edge.url}/v1/videos/{outcome['id']}") as gone:
                assert gone.status == 200
            return
        assert answer.status in (400, 404), outcome
    error = outcome["error"]
    assert error["message"].startswith(f"{error['param']}: expected ")
    assert error["param"].partition(".")[0] in FIELDS


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(fields=st.dictionaries(st.sampled_from((*FIELDS, "input_reference[image_url]", "x")), st.text(max_size=20)))
async def test_bad_forms_are_refused_by_name_or_taken(edge: Edge, fields: dict[str, str]) -> None:
    form = aiohttp.FormData({"prompt": "a cat", **fields})
    form.add_field("unknown", b"x", filename="x")
    async with edge.http.post(f"{edge.url}/v1/videos", data=form) as answer:
        assert answer.status in (200, 400, 404), await answer.text()
        if answer.status == 200:
            async with edge.http.delete(f"{edge.url}/v1/videos/{(await answer.json())['id']}") as gone:
                assert gone.status == 200


@pytest.mark.parametrize(
    ("body", "type"),
    [
        (b"", "application/json"),
        (b"{", "application/json"),
        (b"[]", "application/json"),
        (b"\xff", "application/json"),
        (b"[" * 100_000, "application/json"),
        (b"{}", "text/plain"),
        (b"no form", "multipart/form-data"),
        (b"no form", "multipart/form-data; boundary=x"),
        (b'--x\r\nContent-Disposition: form-data; name="prompt"\r\n\r\na cat', "multipart/form-data; boundary=x"),
    ],
)
async def test_what_is_no_body_is_refused(edge: Edge, body: bytes, type: str) -> None:
    async with edge.http.post(f"{edge.url}/v1/videos", data=body, headers={"Content-Type": type}) as answer:
        assert answer.status == 400, await answer.text()
    await posted(edge)
