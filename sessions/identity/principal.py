"""Who asks, and what they may: the principal behind a key or a client secret."""

import re
from enum import StrEnum

import msgspec

DEFAULT_TENANT = "default"
"""Of the key in the environment."""
ENVIRONMENT_ID = "environment"
"""Of that key, as no other can be called."""
LOCAL_TENANT = "local"
"""Of everybody, on a server without keys: it serves its own machine alone."""

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
"""Tenants are parts of names in the store, ids parts of paths; neither may mean anything there."""
_ORIGIN = re.compile(r"(?!http://.*:80$|https://.*:443$)[a-z][a-z0-9+.-]*://[a-z0-9._~:\[\]-]+")
ORIGIN_FORM = "scheme://host[:port] as browsers send it: in small letters, without a usual port and without a path"


class Scope(StrEnum):
    SESSIONS = "sessions"
    """Conversations, calls, robots, rollouts, and minting client secrets for them."""
    REST = "rest"
    """One-shot requests."""
    ADMIN = "admin"
    """Seeing and ending what others run."""


class Principal(msgspec.Struct, frozen=True, kw_only=True):
    """`kinds` and `models` None: all. `origins` empty: pages that the server allows, and programs; else pages of these origins
    alone. `expires_at` in Unix seconds; a session that has begun may outlive it, by `longest_session_s` at most."""

    tenant: str
    key_id: str
    """For logs and records; it opens nothing."""
    scopes: frozenset[Scope]
    kinds: frozenset[str] | None = None
    models: frozenset[str] | None = None
    origins: tuple[str, ...] = ()
    expires_at: int | None = None
    longest_session_s: float | None = None
    is_secret: bool = False
    """A client secret's: `key_id` is that of the key which made it, and it makes none itself."""
    session: bytes = b""
    """What sessions opened with the secret begin with, as the edge writes it."""

    def may(self, scope: Scope) -> bool:
        return scope in self.scopes

    def may_open(self, kind: str) -> bool:
        return self.kinds is None or kind in self.kinds

    def may_use(self, model: str) -> bool:
        return self.models is None or model in self.models

    def life_s(self, usual_s: float) -> float:
        """How long a session of it may live, where others may live `usual_s`."""
        return usual_s if self.longest_session_s is None else min(usual_s, self.longest_session_s)

    def sees(self, tenant: str) -> bool:
        """A session, a call or a job of `tenant`. To others it is as unknown as one that never was."""
        return self.tenant == tenant


LOCAL = Principal(tenant=LOCAL_TENANT, key_id="local", scopes=frozenset(Scope))
"""Whoever reaches a server without keys."""


def is_origin(text: str) -> bool:
    """Whether a browser can send it so, in the header Origin: what it never sends would let no page in."""
    return _ORIGIN.fullmatch(text) is not None


def is_name(text: str) -> bool:
    """Whether a tenant, or a key's id, may be called so: 1 to 64 of A–Z, a–z, 0–9, - and _."""
    return _NAME.fullmatch(text) is not None


def raw(key: str) -> bytes:
    """The bytes of a header or an environment variable, which need not be UTF-8."""
    return key.encode(errors="surrogateescape")
