"""`WS /v1/realtime?model=M`: from the handshake to the close, and the one funnel for what goes wrong between."""

import contextlib
import logging

from aiohttp import WSCloseCode, WSMsgType, hdrs, web

from realtime.context import CONTEXT, AppContext
from realtime.errors import SERVER, ErrorBody, Invalid, Refusal, UnknownModel
from realtime.health import check_open
from realtime.openai_realtime.connection import Connection, Ended
from realtime.openai_realtime.server_events import Error, EventEncoder
from sessions.manager import SeatRefused
from sessions.voice_config import VoiceConfig

log = logging.getLogger(__name__)

PROTOCOL = "realtime"
CLOSE_TIMEOUT_S = 1.0
"""How long a close waits for the client's own."""


def routes() -> list[web.RouteDef]:
    return [web.get("/v1/realtime", realtime)]


async def realtime(request: web.Request) -> web.StreamResponse:
    context = request.app[CONTEXT]
    _check_protocols(request)
    _check_query(request, context)
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
        async with context.voice_sessions.open(_first_config(context)) as (session, attachment):
            log.info("session opened")
            ended = await Connection(context, socket, session, attachment.session_id).run()
            log.info("session ends: %s", ended.reason)
            return ended
    except SeatRefused as full:
        await _say_last(socket, ErrorBody(message=str(full), type=SERVER, code="session_limit_reached"))
        return Ended(WSCloseCode.TRY_AGAIN_LATER, "no free session")
    except Exception:
        log.exception("a realtime connection failed")
        await _say_last(socket, ErrorBody(message="the server failed; its log tells how", type=SERVER, code="internal_error"))
        return Ended(WSCloseCode.INTERNAL_ERROR, "internal error")


def _first_config(context: AppContext) -> VoiceConfig:
    catalogue = context.catalogue
    return VoiceConfig(
        model=catalogue.pipeline,
        instructions=context.voice_settings.instructions,
        voice=catalogue.default_voice,
        modality="audio" if catalogue.voices else "text",
    )


def _check_query(request: web.Request, context: AppContext) -> None:
    """Raises Refusal for what another kind of session would need. Other parameters are hints of stock clients."""
    model = request.query.get("model", context.catalogue.pipeline)
    if model != context.catalogue.pipeline:
        raise UnknownModel(model, (context.catalogue.pipeline,), "realtime sessions")
    if request.query.get("intent", "conversation") != "conversation":
        raise Invalid("intent", "conversation", request.query["intent"], code="unsupported")
    for name in ("call_id", "resume"):
        if name in request.query:
            message = f"{name}: expected none, got one; a session here begins and ends with its connection"
            raise Refusal(message, code="unsupported", field=name)


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
