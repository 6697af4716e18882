"""`WS /v1/realtime?model=M`: from the handshake to the close, and the one funnel for what goes wrong between."""

import contextlib
import logging
from collections.abc import AsyncGenerator, AsyncIterator

from aiohttp import WSCloseCode, WSMsgType, hdrs, web

from realtime.context import CONTEXT, AppContext
from realtime.errors import AUTHENTICATION, SERVER, ErrorBody, Refusal
from realtime.guard import PRINCIPAL
from realtime.health import check_open
from realtime.openai_realtime.connection import Connection, dismissed
from realtime.openai_realtime.opening import beginning, check_query, last_seq, not_opened
from realtime.openai_realtime.server_events import Error, EventEncoder
from realtime.openai_realtime.waiting_client import WaitingClient
from realtime.openai_realtime.web_socket import WebSocketWire
from realtime.openai_realtime.wire import Ended
from realtime.queue_place import PARAMETER
from realtime.turned_away import close_code, turned_away
from sessions.admission.admission import NotAdmitted, Stay
from sessions.identity.principal import Principal
from sessions.retention.resume_tokens import HeldElsewhere, ResumeRefused, Stopped, Superseded
from sessions.store.interface import StoreDown
from sessions.voice.attached import Attached, Dismissal

log = logging.getLogger(__name__)

PROTOCOL = "realtime"
EVENTS = "events"
"""`?queue=events`: the client wants to hear of its place in the waiting room."""
REVOKED = "Authorization: the key was revoked, or expired, while this client waited"
CLOSE_TIMEOUT_S = 1.0
"""How long a close waits for the client's own."""


def routes() -> list[web.RouteDef]:
    return [web.get("/v1/realtime", realtime)]


async def run_sessions(app: web.Application) -> AsyncIterator[None]:
    """A cleanup context of the application: no session outlives it here."""
    context = app[CONTEXT]
    async with context.ownership.running(), context.voice_sessions:
        yield


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
    await _close(request, socket, await _converse(context, request, socket))
    return socket


async def _converse(context: AppContext, request: web.Request, socket: web.WebSocketResponse[bool]) -> Ended:
    """A connection from its seat to its end. The transport's one funnel; what goes wrong before the upgrade is said by HTTP."""
    try:
        wire = WebSocketWire(socket, context.settings.send_timeout_s)
        client = WaitingClient(wire, lambda: _upgrade(request, socket), tells=request.query.get(PARAMETER) == EVENTS)
        async with _attachment(context, request, socket, client) as attached:
            ended = await Connection(context, client, attached).run()
            if ended.left:
                attached.leave()
            log.info("the connection ends: %s", ended.reason)
            return ended
    except Ended as ended:
        log.info("a connection ended before its session was there: %s", ended.reason)
        if ended.last_word:
            await _say_last(socket, ErrorBody(message=ended.reason, type=ended.last_type, code=ended.last_word))
        return ended
    except Refusal as refused:
        if not socket.prepared:
            raise
        await _say_last(socket, refused.body)
        return Ended(WSCloseCode.POLICY_VIOLATION, "the session has ended")
    except (NotAdmitted, StoreDown) as failure:
        if not socket.prepared:
            raise turned_away(failure) from failure
        await _say_last(socket, turned_away(failure).body)
        return Ended(close_code(failure), "no free session")
    except Exception:
        if not socket.prepared:
            raise
        log.exception("a realtime connection failed")
        await _say_last(socket, ErrorBody(message="the server failed; its log tells how", type=SERVER, code="internal_error"))
        return Ended(WSCloseCode.INTERNAL_ERROR, "internal error")


@contextlib.asynccontextmanager
async def _attachment(
    context: AppContext, request: web.Request, socket: web.WebSocketResponse[bool], client: WaitingClient
) -> AsyncGenerator[Attached]:
    """Whoever comes back in vain hears so before the upgrade, as Refusal; a newcomer for whom there is no seat after it, unless
    the operator wants it otherwise. Who has to wait is upgraded first, and so is who is told that a newer connection came."""
    sessions, token, who = context.voice_sessions, request.query.get("resume"), request[PRINCIPAL]
    stay = Stay(told=client.hear)
    if token is None:
        opening = sessions.open(beginning(request, context).config, principal=who, stay=stay)
    else:
        opening = sessions.resume(token, last_seq=last_seq(request), principal=who, stay=stay)
    if not socket.can_prepare(request).ok:
        await socket.prepare(request)  # raises; nobody has been superseded
    if token is None and not context.admission.settings.refuse_before_upgrade:
        await client.upgrade()
    async with contextlib.AsyncExitStack() as stack:
        try:
            async with client.waiting():
                attached = await stack.enter_async_context(opening)
                await client.upgrade()
                if client.had_to_wait and not await _is_still_let_in(context, who):
                    attached.leave()
                    raise Ended(WSCloseCode.POLICY_VIOLATION, REVOKED, last_word="invalid_api_key", last_type=AUTHENTICATION)
        except (Superseded, Stopped) as gone:
            await client.upgrade()
            raise dismissed(Dismissal.STOPPED if isinstance(gone, Stopped) else Dismissal.SUPERSEDED) from gone
        except (ResumeRefused, HeldElsewhere) as refused:
            raise not_opened(refused) from refused
        log.info("session opened" if token is None else "a client came back to its session")
        yield attached


async def _is_still_let_in(context: AppContext, who: Principal) -> bool:
    """A key may be revoked while its client waits. A store that is down says nothing against it."""
    try:
        return await context.credentials.lives(who.key_id)
    except StoreDown:
        return True


async def _upgrade(request: web.Request, socket: web.WebSocketResponse[bool]) -> None:
    """Raises Ended when the client has gone meanwhile."""
    try:
        await socket.prepare(request)
    except ConnectionError as gone:
        raise Ended from gone


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
    """Politely; but a plain close would wait until a peer that takes nothing has read what is still buffered."""
    transport = request.transport
    if ended.code is not None:
        # Once a wait for room in aiohttp's writer has been cancelled, the next one raises CancelledError: so none here.
        await socket.close(code=ended.code, message=ended.reason.encode(), drain=False)
    answered = socket.closed and socket.close_code != WSCloseCode.ABNORMAL_CLOSURE
    if transport is not None and not answered and (ended.code is None or transport.get_write_buffer_size()):
        transport.abort()
