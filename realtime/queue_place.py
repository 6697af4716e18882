"""The name under which a client that does not stay connected holds its place in the waiting room: a secret of its own, from which
the session that it waits for has its id, so that every node finds it, and nobody who knows the session finds the place."""

import hashlib
import re
import secrets

from aiohttp import web

from realtime.errors import Invalid

PARAMETER = "queue"
_NAME = re.compile(r"[A-Za-z0-9_-]{16,64}")


def asked_place(request: web.Request) -> str | None:
    """`?queue=`: a new one; `?queue=<name>`: the one of before. None: this client knows nothing of waiting. Raises Refusal."""
    given = request.query.get(PARAMETER)
    if given is None or _NAME.fullmatch(given):
        return given
    if given:
        raise Invalid(PARAMETER, "the id that an answer has told in `error.queue`, or nothing", given)
    return secrets.token_urlsafe(16)


def session_at(place: str, tenant: str) -> str:
    """The id of the session that waits there."""
    return f"sess_{hashlib.sha256(f'{tenant} {place}'.encode()).hexdigest()[:20]}"
