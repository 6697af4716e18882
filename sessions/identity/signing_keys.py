"""The keys with which client secrets are signed: one that signs, and those before it, which are believed until nothing that they
have signed can be valid any more."""

import hashlib
import hmac
import secrets
from collections.abc import Callable
from typing import Protocol

import msgspec

from sessions.identity.shelf_view import ShelfView
from sessions.store.interface import KeyStore

SHELF = "signing_keys"
PERIOD_S = 7 * 86_400
"""A new one each week; that of the week before is kept, as a client secret lives for hours at most."""
SHORTEST_CHARACTERS = 32


class SigningKey(msgspec.Struct, frozen=True):
    """`key_id` stands in what it signs."""

    key_id: str
    secret: bytes

    def __repr__(self) -> str:
        return f"SigningKey({self.key_id})"

    def signature(self, text: str) -> bytes:
        return hmac.digest(self.secret, text.encode(), hashlib.sha256)


class SigningKeys(Protocol):
    """Both raise StoreDown."""

    async def current(self) -> SigningKey: ...

    async def find(self, key_id: str) -> SigningKey | None: ...


class OwnSigningKeys:
    """Those of one process, or the ones that an operator has set, of which the first signs. `texts` empty: a random one, so that
    what it has signed ends with the process. Raises ValueError for one that is too short."""

    def __init__(self, texts: tuple[str, ...] = ()) -> None:
        for text in texts:
            if len(text) < SHORTEST_CHARACTERS:
                raise ValueError(f"signing key: expected at least {SHORTEST_CHARACTERS} random characters, got {len(text)}")
        keys = [_named(hashlib.sha256(text.encode(errors="surrogateescape")).digest()) for text in texts]
        self._keys = keys or [_named(secrets.token_bytes(32))]

    async def current(self) -> SigningKey:
        return self._keys[0]

    async def find(self, key_id: str) -> SigningKey | None:
        return next((key for key in self._keys if key.key_id == key_id), None)


class _Record(msgspec.Struct, frozen=True):
    secret: bytes


class SharedSigningKeys:
    """Those that all nodes share. Each week the first node that needs one makes it. `clock` is monotonic, `unix_s` the wall
    clock: one that is off by less than a week does no harm."""

    def __init__(self, store: KeyStore, clock: Callable[[], float], unix_s: Callable[[], float]) -> None:
        self._store = store
        self._view = ShelfView(store, SHELF, _Record, clock)
        self._unix_s = unix_s

    async def current(self) -> SigningKey:
        week = int(self._unix_s() // PERIOD_S)
        record = (await self._view.records()).get(_name(week)) or await self._make(week)
        return SigningKey(_name(week), record.secret)

    async def find(self, key_id: str) -> SigningKey | None:
        record = await self._view.find(key_id)
        return None if record is None else SigningKey(key_id, record.secret)

    async def _make(self, week: int) -> _Record:
        """That of the node that was first, if this one is not."""
        proposed = msgspec.json.encode(_Record(secrets.token_bytes(32)))
        made = await self._store.put(SHELF, _name(week), proposed, only_new=True)
        kept = {_name(week - 1), _name(week), _name(week + 1)}
        for name in (await self._store.shelf(SHELF)).keys() - kept:
            await self._store.remove(SHELF, name)
        self._view.forget()
        return msgspec.json.decode(made, type=_Record)


def _name(week: int) -> str:
    return f"w{week}"


def _named(secret: bytes) -> SigningKey:
    return SigningKey(hmac.digest(secret, b"id", hashlib.sha256).hex()[:8], secret)
