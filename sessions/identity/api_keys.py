"""API keys: made once, shown once, kept as hashes.

A key is `ak_<id>_<secret>`. The id stands in lists and logs; the secret is 256 random bits. Its hash is a plain SHA-256: a slow
hash protects what people choose and others may guess, and nobody guesses one of 2^256, but it would cost every request.
"""

import hashlib
import hmac
import re
import secrets
from collections.abc import Callable

import msgspec

from sessions.identity.principal import Principal, Scope
from sessions.identity.shelf_view import ShelfView
from sessions.store.interface import KeyStore

SHELF = "api_keys"
PREFIX = "ak_"
ID_CHARACTERS = 12
_KEY = re.compile(r"ak_(?P<id>[0-9a-f]{12})_[A-Za-z0-9_-]{43}")


class NotValid(Exception):
    """A key, or a client secret, that opens nothing. The text never repeats it."""


class KeyRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What is kept of a key, under its id; times in Unix seconds. What it allows is told as in Principal."""

    hash: str
    """SHA-256 of the whole key, in hexadecimal."""
    tenant: str
    scopes: frozenset[Scope]
    kinds: frozenset[str] | None = None
    models: frozenset[str] | None = None
    origins: tuple[str, ...] = ()
    created_at: int
    expires_at: int | None = None
    longest_session_s: float | None = None

    def is_valid(self, now_s: float) -> bool:
        return self.expires_at is None or now_s < self.expires_at

    def principal(self, key_id: str) -> Principal:
        return Principal(
            tenant=self.tenant,
            key_id=key_id,
            scopes=self.scopes,
            kinds=self.kinds,
            models=self.models,
            origins=self.origins,
            expires_at=self.expires_at,
            longest_session_s=self.longest_session_s,
        )


class NewKey(msgspec.Struct, frozen=True):
    """`text` is the key itself, which nobody can tell again."""

    key_id: str
    text: str

    def __repr__(self) -> str:
        return f"NewKey({self.key_id})"


def new_key() -> NewKey:
    key_id = secrets.token_hex(ID_CHARACTERS // 2)
    return NewKey(key_id, f"{PREFIX}{key_id}_{secrets.token_urlsafe(32)}")


def hashed(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()


class ApiKeys:
    """The keys of an installation, as a node checks them: a revoked one stops within `shelf_view.FRESH_S`. `clock` is monotonic,
    `unix_s` the wall clock."""

    def __init__(self, store: KeyStore, clock: Callable[[], float], unix_s: Callable[[], float]) -> None:
        self._view = ShelfView(store, SHELF, KeyRecord, clock)
        self._unix_s = unix_s

    async def principal(self, key: str) -> Principal:
        """Raises NotValid and StoreDown."""
        form = _KEY.fullmatch(key)
        record = None if form is None else await self._view.find(form["id"])
        if form is None or record is None or not hmac.compare_digest(record.hash, hashed(key)):
            raise NotValid("this key is not valid here")
        if not record.is_valid(self._unix_s()):
            raise NotValid("this key has expired")
        return record.principal(form["id"])

    async def is_alive(self, key_id: str) -> bool:
        """Neither revoked nor expired. Raises StoreDown."""
        record = await self._view.find(key_id)
        return record is not None and record.is_valid(self._unix_s())

    async def exist(self) -> bool:
        """Whether there is any, be it an expired one. Raises StoreDown."""
        return bool(await self._view.records())
