"""Sessions as operators, and tenants for their own, see and end them."""

import logging

from aiohttp import web

from realtime.admin.asking import answer, asked_page, asked_tenant, asking_the_store, visible_tenant
from realtime.admin.records import SessionClosed, SessionPage, SessionShown
from realtime.context import CONTEXT
from realtime.errors import SERVER, Refusal, shown
from sessions.identity.principal import is_name
from sessions.store.records import Listed, Order

log = logging.getLogger(__name__)

PATH = "/v1/admin/sessions"


def routes() -> list[web.RouteDef]:
    one = PATH + "/{session_id}"
    return [web.get(PATH, list_sessions), web.get(one, inspect), web.delete(one, close)]


async def list_sessions(request: web.Request) -> web.Response:
    tenant, (after, limit) = asked_tenant(request), asked_page(request)
    with asking_the_store():
        found = await request.app[CONTEXT].store.sessions(tenant, after, limit + 1)
    page, more = found[:limit], len(found) > limit
    return answer(SessionPage(data=tuple(map(_shown, page)), next=page[-1].record.session_id if more else None))


async def inspect(request: web.Request) -> web.Response:
    return answer(_shown(await _found(request)))


async def close(request: web.Request) -> web.Response:
    """Its node ends it, when it has one: the client is told. Else it is billed and deleted here, all of it."""
    found, store = await _found(request), request.app[CONTEXT].store
    session_id = found.record.session_id
    with asking_the_store():
        owner = await store.owner(session_id)
        if owner is not None:
            await store.order(owner.node, Order("close", session_id))
            return answer(SessionClosed(id=session_id, status="closing", node=owner.node), status=202)
        await store.bill(found.record.tenant, session_id, found.usage)
        await _delete(request, session_id)
        if found.node:
            await store.release(session_id, found.node)
    return answer(SessionClosed(id=session_id, status="deleted"))


async def _delete(request: web.Request, session_id: str) -> None:
    """Raises Refusal (500) while a file of it cannot be deleted: then it is still there, and may be deleted again."""
    try:
        await request.app[CONTEXT].voice_sessions.forget(session_id)
    except OSError as kept:
        log.error("session %s is not deleted, as a file of it cannot be: %s", session_id, kept)
        message = "session: the file of its snapshot cannot be deleted, so the session is still here; the server's log tells why"
        raise Refusal(message, status=500, code="snapshot_not_deleted", type=SERVER) from kept


async def _found(request: web.Request) -> Listed:
    """Raises Refusal: 404 also for one of another tenant."""
    tenant, session_id = visible_tenant(request), request.match_info["session_id"]
    with asking_the_store():
        found = await request.app[CONTEXT].store.look(session_id) if is_name(session_id) else None
    if found is None or tenant not in (None, found.record.tenant):
        message = f"session id: there is no session {shown(session_id)}; it may have ended"
        raise Refusal(message, status=404, code="session_not_found", field="session_id")
    return found


def _shown(listed: Listed) -> SessionShown:
    record = listed.record
    return SessionShown(
        id=record.session_id,
        tenant=record.tenant,
        kind=record.kind,
        model=record.model,
        state=record.state,
        node=listed.node,
        principal=record.principal,
        life_s=record.life_s,
        usage=listed.usage,
    )
