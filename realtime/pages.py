"""The page that people open: `/` and the files of `web/` under `/web/`. It needs no key; what it asks of `/v1` does."""

from collections.abc import Iterator
from pathlib import Path

from aiohttp import hdrs, web
from aiohttp.typedefs import Handler

FOLDER = Path(__file__).resolve().parents[1] / "web"
PREFIX = "/web/"
CONTENT_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml; charset=utf-8",
}
"""What is served. Everything else in the folder is for its readers."""

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; object-src 'none'; "
        "require-trusted-types-for 'script'"
    ),
    "Permissions-Policy": "microphone=(self), camera=(), geolocation=()",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    hdrs.CACHE_CONTROL: "no-cache",  # asked again each time, answered 304 while nothing has changed
}


def routes(folder: Path = FOLDER) -> list[web.RouteDef]:
    """One route for each file that is there now, so that no path leads anywhere else."""
    files = {PREFIX + path.relative_to(folder).as_posix(): path for path in _served(folder)}
    index = files.pop(f"{PREFIX}index.html", None)
    routes = [web.get(url, _sends(path)) for url, path in files.items()]
    return routes if index is None else [web.get("/", _sends(index)), *routes]


def _served(folder: Path) -> Iterator[Path]:
    root = folder.resolve()
    for path in sorted(folder.rglob("*")):
        if path.suffix in CONTENT_TYPES and path.is_file() and path.resolve().is_relative_to(root):
            yield path


def _sends(path: Path) -> Handler:
    headers = {**HEADERS, hdrs.CONTENT_TYPE: CONTENT_TYPES[path.suffix]}

    async def send(_request: web.Request) -> web.StreamResponse:
        return web.FileResponse(path, headers=headers)

    return send
