"""Who may use the admin paths, and what all of them need."""

import re
from collections.abc import Generator
from contextlib import contextmanager

import msgspec
from aiohttp import web

from realtime.errors import Forbidden, Invalid
from realtime.guard import PRINCIPAL
from realtime.turned_away import turned_away
from sessions.identity.principal import Scope, is_name
from sessions.store.interface import StoreDown

PAGE = 100
LONGEST_PAGE = 1000
_NUMBER = re.compile(r"[0-9]{1,9}")


@contextmanager
def asking_the_store() -> Generator[None]:
    """Raises Refusal: 503 while the store is down."""
    try:
        yield
    except StoreDown as down:
        raise turned_away(down) from down


def visible_tenant(request: web.Request) -> str | None:
    """Whose sessions the caller may see; None: everybody's. Raises Forbidden for a client secret: it is for one conversation."""
    principal = request[PRINCIPAL]
    if principal.is_secret:
        raise Forbidden("Authorization: expected an API key, got a client secret", code="key_needed")
    return None if principal.may(Scope.ADMIN) else principal.tenant


def asked_tenant(request: web.Request) -> str | None:
    """`?tenant=`, as far as the caller may ask for it; None: of all. Raises Forbidden and Invalid."""
    own, asked = visible_tenant(request), _name(request, "tenant")
    if own is not None and asked not in (None, own):
        raise Forbidden(
            "tenant: expected your own, as this key has not the scope admin, got another one", code="tenant_not_allowed"
        )
    return asked if own is None else own


def asked_page(request: web.Request) -> tuple[str, int]:
    """`?after=` and `?limit=`. Raises Invalid."""
    limit = request.query.get("limit", str(PAGE))
    if _NUMBER.fullmatch(limit) is None or not 1 <= int(limit) <= LONGEST_PAGE:
        raise Invalid("limit", f"a number from 1 to {LONGEST_PAGE}", limit)
    return _name(request, "after") or "", int(limit)


def answer(body: msgspec.Struct, status: int = 200) -> web.Response:
    return web.Response(status=status, body=msgspec.json.encode(body), content_type="application/json")


def _name(request: web.Request, field: str) -> str | None:
    name = request.query.get(field)
    if name is not None and not is_name(name):
        raise Invalid(field, "1 to 64 letters, digits, - and _", name)
    return name
