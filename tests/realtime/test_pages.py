"""The page is served whole, and nothing besides it."""

from pathlib import Path

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from fakes.edge import Edge, ServeEdge
from realtime import pages


async def test_the_page_needs_no_key_and_the_api_does(serve_edge: ServeEdge) -> None:
    edge = await serve_edge(api_key="secret")
    async with edge.http.get(f"{edge.url}/") as page:
        assert page.status == 200
        assert page.headers["Content-Type"] == "text/html; charset=utf-8"
        assert "<title>Antiphon</title>" in await page.text()
    async with edge.http.get(f"{edge.url}/v1/models") as models:
        assert models.status == 401


async def test_everything_that_the_page_names_is_there(edge: Edge) -> None:
    modules = [path.relative_to(pages.FOLDER).as_posix() for path in pages.FOLDER.rglob("*.js")]
    assert "voice/page.js" in modules
    for name in modules:
        async with edge.http.get(f"{edge.url}/web/{name}") as module:
            assert (module.status, module.headers["Content-Type"]) == (200, "text/javascript; charset=utf-8")
    async with edge.http.get(f"{edge.url}/web/voice/page.css") as style:
        assert (style.status, style.headers["Content-Type"]) == (200, "text/css; charset=utf-8")


@pytest.mark.parametrize("path", ["/", "/web/voice/page.js"])
async def test_nothing_inline_nothing_foreign_and_only_our_microphone(edge: Edge, path: str) -> None:
    async with edge.http.get(edge.url + path) as answer:
        policy = answer.headers["Content-Security-Policy"]
        assert "default-src 'self'" in policy
        assert "unsafe" not in policy
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["Referrer-Policy"] == "no-referrer"
        assert "microphone=(self)" in answer.headers["Permissions-Policy"]


async def test_a_file_that_has_not_changed_is_not_sent_again(edge: Edge) -> None:
    async with edge.http.get(f"{edge.url}/") as first:
        assert first.headers["Cache-Control"] == "no-cache"
        tag = first.headers["ETag"]
    async with edge.http.get(f"{edge.url}/", headers={"If-None-Match": tag}) as second:
        assert (second.status, await second.read()) == (304, b"")


@pytest.mark.parametrize(
    "path",
    [
        "/web/",
        "/web/index.html",
        "/web/README.md",
        "/web/../README.md",
        "/web/%2e%2e/README.md",
        "/web/voice/..%2f..%2fpyproject.toml",
        "/web//etc/passwd",
        "/web/voice/page.js/",
        "/web/voice/page.js%00.css",
    ],
)
async def test_nothing_else_can_be_reached(edge: Edge, path: str) -> None:
    async with edge.http.get(edge.url + path) as answer:
        assert answer.status == 404


async def test_a_link_that_leads_out_of_the_folder_is_not_followed(tmp_path: Path) -> None:
    folder = tmp_path / "web"
    folder.mkdir()
    (tmp_path / "secret.js").write_text("secret")
    (folder / "link.js").symlink_to(tmp_path / "secret.js")
    (folder / "index.html").write_text("page")
    app = web.Application()
    app.add_routes(pages.routes(folder))
    async with TestClient(TestServer(app)) as client:
        assert (await client.get("/")).status == 200
        assert (await client.get("/web/link.js")).status == 404
