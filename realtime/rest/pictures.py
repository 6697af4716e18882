"""`GET /pictures/…`: what `response_format: url` names."""

from aiohttp import hdrs, web

from realtime.context import CONTEXT
from realtime.errors import Refusal
from realtime.picture_links import LIFE_S

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; sandbox",
    "Cross-Origin-Resource-Policy": "cross-origin",  # pages show it, wherever they come from
    "X-Content-Type-Options": "nosniff",
    hdrs.CACHE_CONTROL: f"private, max-age={LIFE_S:.0f}, immutable",
}


async def get_picture(request: web.Request) -> web.Response:
    kept = request.app[CONTEXT].picture_links.find(request.match_info["name"])
    if kept is None:
        message = f"there is no such picture, or no longer: they are kept for {LIFE_S / 60:.0f} minutes at most"
        raise Refusal(message, status=404, code="picture_not_found")
    return web.Response(body=kept.file, content_type=f"image/{kept.format}", headers=HEADERS)
