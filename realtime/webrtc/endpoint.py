"""`POST /v1/realtime/calls` and what ends a call."""

from collections.abc import AsyncIterator

from aiohttp import web

from realtime.context import CONTEXT
from realtime.health import check_open
from realtime.openai_realtime.opening import check_query, default_session
from realtime.openai_realtime.session_config import apply
from realtime.webrtc.call_body import SDP, read_call_body
from realtime.webrtc.calls import Calls
from realtime.webrtc.offer import read_offer

PATH = "/v1/realtime/calls"
CALLS = web.AppKey("calls", Calls)


def routes() -> list[web.RouteDef]:
    return [
        web.post(PATH, create),
        web.post(PATH + "/{call_id}/hangup", hang_up),
        web.delete(PATH + "/{call_id}", hang_up),
    ]


async def run_calls(app: web.Application) -> AsyncIterator[None]:
    """A cleanup context of the application: no call outlives it."""
    async with Calls(app[CONTEXT]) as app[CALLS]:
        yield


async def create(request: web.Request) -> web.Response:
    context = request.app[CONTEXT]
    check_query(request, context)
    check_open(context)
    body = await read_call_body(request)
    offer = read_offer(body.sdp)
    config = apply(default_session(context), body.session, context.catalogue)
    call_id, answer = await request.app[CALLS].open(offer, config)
    return web.Response(status=201, text=answer, content_type=SDP, headers={"Location": f"{PATH}/{call_id}"})


async def hang_up(request: web.Request) -> web.Response:
    await request.app[CALLS].hang_up(request.match_info["call_id"])
    return web.Response()
