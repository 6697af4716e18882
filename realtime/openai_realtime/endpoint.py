"""`WS /v1/realtime?model=M`: from the handshake to the close, and the one funnel for what goes wrong between."""

import contextlib
import logging

from aiohttp import WSCloseCode, WSMsgType, hdrs, web

from realtime.context import CONTEXT, AppContext
from realtime.errors import SERVER, ErrorBody, Refusal
from realtime.health import check_open
from realtime.openai_realtime.connection import Connection
from realtime.openai_realtime.opening import check_query, default_session
from realtime.openai_realtime.server_events import Error, EventEncoder
from realtime.openai_realtime.web_socket import WebSocketWire
from realtime.openai_realtime.wire import Ended
from sessions.manager import SeatRefused

log = logging.getLogger(__name__)

PROTOCOL = "realtime"
CLOSE_TIMEOUT_S = 1.0
"""How long a close waits for the client's own."""


def routes() -> list[web.RouteDef]:
    return [web.get("/v1/realtime", realtime)]


async def realtime(request: web.Request) -> web.StreamResponse:
    context = request.app[CONTEXT]
    _check_protocols(request)
    check_query(request, context)
    check_open(context)
    socket = web.WebSocketResponse(
        protocols=(PROTOCOL,),
        heartbeat=context.settings.heartbeat_s,
        max_msg_size=context.settings.max_message_bytes,
        compress=False,  # 0.02 ms for a 100 KB frame instead of 1.9
        timeout=CLOSE_TIMEOUT_S,
        decode_text=False,
    )
    await socket.prepare(request)
    await _close(request, socket, await _converse(context, socket))
    return socket


async def _converse(context: AppContext, socket: web.WebSocketResponse[bool]) -> Ended:
    """A session from its seat to its end. The transport's one funnel."""
    try:
        first = default_session(context)
        async with context.voice_sessions.open(first.config) as (session, attachment):
            log.info("session opened")
            wire = WebSocketWire(socket, context.settings.send_timeout_s)
            ended = await Connection(context, wire, session, attachment.session_id, first).run()
            log.info("session ends: %s", ended.reason)
            return ended
    except SeatRefused as full:
        await _say_last(socket, ErrorBody(message=str(full), type=SERVER, code="session_limit_reached"))
        return Ended(WSCloseCode.TRY_AGAIN_LATER, "no free session")
    except Exception:
        log.exception("a realtime connection failed")
        await _say_last(socket, ErrorBody(message="the server failed; its log tells how", type=SERVER, code="internal_error"))
        return Ended(WSCloseCode.INTERNAL_ERROR, "internal error")


def _check_protocols(request: web.Request) -> None:
    """Raises Refusal. aiohttp would log the offers that it does not know, and keys travel among them."""
    offers = request.headers.get(hdrs.SEC_WEBSOCKET_PROTOCOL)
    if offers is not None and PROTOCOL not in (offer.strip() for offer in offers.split(",")):
        field = "Sec-WebSocket-Protocol"
        raise Refusal(f"{field}: expected {PROTOCOL} among the offers, got others only", code="invalid_value", field=field)


async def _say_last(socket: web.WebSocketResponse[bool], error: ErrorBody) -> None:
    with contextlib.suppress(ConnectionError):
        await socket.send_frame(EventEncoder("end").encode(Error(error=error)), WSMsgType.TEXT)


async def _close(request: web.Request, socket: web.WebSocketResponse[bool], ended: Ended) -> None:
    if ended.code is not None:
        await socket.close(code=ended.code, message=ended.reason.encode())
    elif request.transport is not None and (not socket.closed or socket.close_code == WSCloseCode.ABNORMAL_CLOSURE):
        request.transport.abort()  # a plain close would wait until the peer has read what is still buffered
