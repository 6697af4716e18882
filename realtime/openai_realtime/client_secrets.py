"""`POST /v1/realtime/client_secrets`: a key for a browser, short-lived, with the session that it is for."""

from collections.abc import Sequence
from typing import Annotated, Literal

import msgspec
from aiohttp import hdrs, web

from realtime.context import CONTEXT, AppContext
from realtime.errors import Forbidden, Invalid, Refusal, UnknownModel
from realtime.guard import PRINCIPAL
from realtime.openai_realtime.opening import default_session
from realtime.openai_realtime.secret_session import written
from realtime.openai_realtime.session_config import apply, shown_session
from realtime.openai_realtime.session_patch import SessionPatch
from realtime.rest.body import read_json
from realtime.turned_away import turned_away
from sessions.identity.client_secrets import NotGranted, TooLong, Wish
from sessions.identity.principal import ORIGIN_FORM, Scope, is_origin
from sessions.store.interface import StoreDown
from sessions.voice.sessions import new_id

PATH = "/v1/realtime/client_secrets"
SHORTEST_SESSION_S, LONGEST_SESSION_S = 10, 86_400
"""What a secret may name as the longest life of a session. A shorter one would end before its client has said anything."""
Names = frozenset[Annotated[str, msgspec.Meta(max_length=200)]]


class ExpiresAfter(msgspec.Struct, frozen=True):
    anchor: Literal["created_at"] = "created_at"
    seconds: Annotated[int, msgspec.Meta(ge=10, le=7_200)] = 600


class SecretBody(msgspec.Struct, frozen=True, kw_only=True):
    """Those after `session` are ours: they narrow what the key that asks allows."""

    expires_after: ExpiresAfter | None = None
    session: SessionPatch = SessionPatch()
    scopes: frozenset[Scope] | None = None
    kinds: Names | None = None
    models: Names | None = None
    origins: Annotated[tuple[Annotated[str, msgspec.Meta(max_length=200)], ...], msgspec.Meta(max_length=20)] | None = None
    longest_session_s: float | None = None


class MadeSecret(msgspec.Struct, frozen=True, kw_only=True):
    value: str
    expires_at: int
    session: dict[str, object]


def routes() -> list[web.RouteDef]:
    return [web.post(PATH, create)]


async def create(request: web.Request) -> web.Response:
    context, maker = request.app[CONTEXT], request[PRINCIPAL]
    if maker.is_secret:
        raise Forbidden("Authorization: expected an API key, got a client secret, which makes no others", code="key_needed")
    body = await read_json(request, SecretBody)
    _check_model(body.session.model, context)
    _check_origins(body.origins or ())
    _check_life(body.longest_session_s)
    effective = apply(default_session(context), body.session, context.catalogue)
    try:
        value, expires_at = await context.credentials.secrets.make(maker, _wish(body))
    except NotGranted as refused:
        raise Forbidden(str(refused), code="not_granted", field=refused.field) from refused
    except TooLong as long:
        raise Refusal(f"session: {long}", code="too_long", field="session") from long
    except StoreDown as down:
        raise turned_away(down) from down
    made = MadeSecret(value=value, expires_at=expires_at, session=shown_session(effective, new_id("sess")))
    headers = {hdrs.CACHE_CONTROL: "no-store"}
    return web.Response(body=msgspec.json.encode(made), content_type="application/json", headers=headers)


def _check_model(model: str | None, context: AppContext) -> None:
    if model is not None and model != context.catalogue.pipeline:
        raise UnknownModel(model, (context.catalogue.pipeline,), "realtime sessions")


def _check_origins(origins: Sequence[str]) -> None:
    for number, origin in enumerate(origins):
        if not is_origin(origin):
            raise Invalid(f"origins[{number}]", ORIGIN_FORM, origin)


def _check_life(longest_s: float | None) -> None:
    if longest_s is not None and not SHORTEST_SESSION_S <= longest_s <= LONGEST_SESSION_S:
        raise Invalid("longest_session_s", f"{SHORTEST_SESSION_S} to {LONGEST_SESSION_S} seconds", longest_s)


def _wish(body: SecretBody) -> Wish:
    return Wish(
        seconds=(body.expires_after or ExpiresAfter()).seconds,
        session=written(body.session),
        scopes=body.scopes,
        kinds=body.kinds,
        models=body.models,
        origins=body.origins,
        longest_session_s=body.longest_session_s,
    )
