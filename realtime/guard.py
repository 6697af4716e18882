"""Who may speak to this server, and who it is: every request under /v1/ has its principal here."""

from aiohttp import hdrs, web
from aiohttp.typedefs import Handler

from realtime.context import CONTEXT, AppContext
from realtime.errors import RATE_LIMIT, Forbidden, Refusal, Unauthorized, shown
from realtime.forwarded import CALLER
from realtime.origins import GUARDED_PREFIX, READABLE, check_origin, is_preflight, note_caller, screen
from realtime.picture_links import PATH
from realtime.turned_away import turned_away, whole_seconds
from sessions.identity.api_keys import NotValid
from sessions.identity.principal import Principal, Scope
from sessions.store.interface import StoreDown

PRINCIPAL = web.RequestKey("principal", Principal)
"""Set for every request under /v1/."""
KEY_PROTOCOL = "openai-insecure-api-key."
"""Browsers cannot set headers on a WebSocket; they offer the key as a subprotocol."""
KEY_SCHEMES = ("bearer", "api-key")
"""The second is what robots' clients say."""
_SCOPES: dict[str, frozenset[Scope]] = {
    "/v1/admin/sessions": frozenset((Scope.ADMIN, Scope.SESSIONS)),
    "/v1/admin/": frozenset((Scope.ADMIN,)),
    "/v1/realtime": frozenset((Scope.SESSIONS,)),
    "/v1/models": frozenset((Scope.SESSIONS, Scope.REST)),
    GUARDED_PREFIX: frozenset((Scope.REST,)),
}
"""Beginning of a path → one of these is needed; the first that fits."""


@web.middleware
async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
    context = request.app[CONTEXT]
    path = _path(request)
    if path.startswith(PATH):
        note_caller(request, context.settings)  # its name is its key: any page may show it
        return await handler(request)
    if not path.startswith(GUARDED_PREFIX):
        screen(request, context.settings)
        return web.Response(status=204) if is_preflight(request) else await handler(request)
    note_caller(request, context.settings)
    try:
        keyed = request[READABLE] = await context.credentials.are_asked_for()
        if not keyed:
            check_origin(request, context.settings)
        if is_preflight(request):
            return web.Response(status=204)  # it bears no key, and is no more than a question
        principal = request[PRINCIPAL] = await _principal(request, context)
    except StoreDown as down:
        raise turned_away(down) from down
    if keyed:
        check_origin(request, context.settings, principal.origins)
    _check_scope(path, principal)
    return await handler(request)


def check_allowed(request: web.Request, kind: str, model: str) -> Principal:
    """Before anything is opened. Raises Forbidden."""
    principal = request[PRINCIPAL]
    if not principal.may_open(kind):
        raise Forbidden(f"key: expected one that may open {kind} sessions, got one for others", code="kind_not_allowed")
    if not principal.may_use(model):
        raise Forbidden(f"model: this key may not use {shown(model)}", code="model_not_allowed")
    return principal


def _path(request: web.Request) -> str:
    """That of the route which was found: what a client writes can mean the same in many ways."""
    resource = request.match_info.route.resource
    return request.path if resource is None else resource.canonical


async def _principal(request: web.Request, context: AppContext) -> Principal:
    """Raises Refusal (401, 429) and StoreDown."""
    given, address = _given_key(request), request[CALLER].address
    can_guess = given is not None and context.credentials.is_guess(given)
    if can_guess and (wait_s := context.failed_attempts.wait_s(address, context.clock())) > 0:
        message = "Authorization: too many wrong keys came from this address; try again later"
        after_s = whole_seconds(wait_s)
        raise Refusal(message, status=429, type=RATE_LIMIT, code="too_many_attempts", retry_after_s=after_s)
    try:
        return await context.credentials.principal(given)
    except NotValid as wrong:
        if can_guess:
            context.failed_attempts.failed(address, context.clock())
        raise Unauthorized(f"Authorization: {wrong}") from None  # not even a traceback has the key


def _check_scope(path: str, principal: Principal) -> None:
    needed = next(scopes for prefix, scopes in _SCOPES.items() if path.startswith(prefix))
    if not needed & principal.scopes:
        wanted = " or ".join(sorted(needed))
        raise Forbidden(f"key: expected one with the scope {wanted}, got one with others", code="scope_not_allowed")


def _given_key(request: web.Request) -> str | None:
    scheme, _, key = request.headers.get(hdrs.AUTHORIZATION, "").partition(" ")
    if scheme.lower() in KEY_SCHEMES and key.strip():
        return key.strip()
    for offer in request.headers.get(hdrs.SEC_WEBSOCKET_PROTOCOL, "").split(","):
        if offer.strip().startswith(KEY_PROTOCOL):
            return offer.strip().removeprefix(KEY_PROTOCOL)
    return None
