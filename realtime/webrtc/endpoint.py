"""`/v1/realtime/calls`: how a call begins, what a client may tell about its network later, and what ends it (RFC 9725, WHIP)."""

from collections.abc import AsyncIterator

import msgspec
from aiohttp import hdrs, web

from realtime.context import CONTEXT, AppContext
from realtime.errors import Refusal, shown
from realtime.guard import PRINCIPAL
from realtime.health import check_open
from realtime.openai_realtime.opening import beginning, check_query, last_seq
from realtime.openai_realtime.secret_session import fixed_by
from realtime.openai_realtime.session_config import WireSession, apply
from realtime.queue_place import asked_place
from realtime.webrtc.call import Return
from realtime.webrtc.call_body import SDP, read_call_body, read_fragment_body
from realtime.webrtc.calls import Calls
from realtime.webrtc.offer import Offer, read_offer
from realtime.webrtc.trickle import read_fragment

PATH = "/v1/realtime/calls"
SERVERS_PATH = "/v1/realtime/ice_servers"
CALLS = web.AppKey("calls", Calls)


def routes() -> list[web.RouteDef]:
    return [
        web.get(SERVERS_PATH, ice_servers),
        web.post(PATH, create),
        web.options(PATH, tell_terms),
        web.post(PATH + "/{call_id}/hangup", hang_up),
        web.patch(PATH + "/{call_id}", trickle),
        web.delete(PATH + "/{call_id}", hang_up),
    ]


async def run_calls(app: web.Application) -> AsyncIterator[None]:
    """A cleanup context of the application: no call outlives it."""
    async with Calls(app[CONTEXT]) as app[CALLS]:
        yield


async def ice_servers(request: web.Request) -> web.Response:
    """A list of RTCIceServer, for `new RTCPeerConnection({iceServers})`."""
    turn = request.app[CONTEXT].turn
    servers = [] if turn is None else [turn.for_clients()]
    body = msgspec.json.encode(servers)
    return web.Response(body=body, content_type="application/json", headers={hdrs.CACHE_CONTROL: "no-store"})


async def tell_terms(request: web.Request) -> web.Response:
    """What a WHIP client may ask before its offer."""
    response = web.Response(status=204, headers={"Accept-Post": SDP})
    _link_servers(response, request.app[CONTEXT])
    return response


async def create(request: web.Request) -> web.Response:
    context = request.app[CONTEXT]
    check_query(request, context)
    check_open(context)
    body = await read_call_body(request)
    offer = read_offer(body.sdp)
    config, token = apply(_beginning(request, offer), body.session, context.catalogue), request.query.get("resume")
    session = config if token is None else Return(token, body.session, last_seq(request))
    held, place = request.query.get("hold") == "1", asked_place(request)
    call_id, answer = await request.app[CALLS].open(offer, session, request[PRINCIPAL], held=held, place=place)
    headers = {"Location": f"{PATH}/{call_id}", "ETag": _entity_tag(call_id)}
    response = web.Response(status=201, text=answer, content_type=SDP, headers=headers)
    _link_servers(response, context)
    return response


async def trickle(request: web.Request) -> web.Response:
    call_id = request.match_info["call_id"]
    call = request.app[CALLS].find(call_id, request[PRINCIPAL])
    body = await read_fragment_body(request)
    _check_match(request, _entity_tag(call_id))
    await call.trickle(read_fragment(body))
    return web.Response(status=204)


async def hang_up(request: web.Request) -> web.Response:
    await request.app[CALLS].hang_up(request.match_info["call_id"], request[PRINCIPAL])
    return web.Response()


def _beginning(request: web.Request, offer: Offer) -> WireSession:
    """A client that does not listen (WHIP) is answered in text, unless it asks otherwise: nobody would hear the sound."""
    session, fixed = beginning(request, request.app[CONTEXT]), fixed_by(request[PRINCIPAL])
    if offer.direction in ("recvonly", "inactive") and fixed.output_modalities is None:
        return msgspec.structs.replace(session, config=msgspec.structs.replace(session.config, modality="text"))
    return session


def _link_servers(response: web.Response, context: AppContext) -> None:
    if context.turn is not None:
        response.headers.extend((hdrs.LINK, link) for link in context.turn.links())


def _entity_tag(call_id: str) -> str:
    """Of the ICE session: a call has one as long as it lives."""
    return f'"{call_id}"'


def _check_match(request: web.Request, tag: str) -> None:
    given = [each.strip() for line in request.headers.getall(hdrs.IF_MATCH, []) for each in line.split(",")]
    if not any(given):
        message = "If-Match: expected the ETag that the call was created with, got none"
        raise Refusal(message, status=428, code="if_match_required", field="If-Match")
    if tag not in given and "*" not in given:
        message = f"If-Match: expected {tag}, got {shown(', '.join(given))}"
        raise Refusal(message, status=412, code="if_match_stale", field="If-Match")
