"""Making, listing, revoking and rotating API keys: what operators do."""

import time
from collections.abc import Callable, Mapping

import msgspec

from sessions.identity.api_keys import ID_CHARACTERS, PREFIX, SHELF, KeyRecord, NewKey, hashed, new_key
from sessions.identity.principal import ORIGIN_FORM, Scope, is_name, is_origin
from sessions.identity.shelf_view import ShelfView
from sessions.store.interface import KeyStore

LONGEST_SHOWN = 40
KEPT_EXPIRED_S = 7 * 86_400
"""An expired key is listed for so long."""

_encoder = msgspec.json.Encoder(order="deterministic")


class NoSuchKey(ValueError):
    """Where the key itself was given, as people do, it is not repeated."""

    def __init__(self, key_id: str, why: str) -> None:
        got = f"{key_id[:LONGEST_SHOWN]!r}, {why}"
        if key_id.startswith(PREFIX):
            got = f"a key: its id is {key_id.removeprefix(PREFIX)[:ID_CHARACTERS]!r}"
        super().__init__(f"key: expected the id of one in `antiphon keys list`, got {got}")


class GrantRefused(ValueError):
    """Nothing that a key could be for."""


class Grant(msgspec.Struct, frozen=True, kw_only=True):
    """What a new key is to allow, as in Principal. Raises GrantRefused for a tenant or an origin that cannot be called so."""

    tenant: str
    scopes: frozenset[Scope] = frozenset((Scope.SESSIONS, Scope.REST))
    kinds: frozenset[str] | None = None
    models: frozenset[str] | None = None
    origins: tuple[str, ...] = ()
    longest_session_s: float | None = None

    def __post_init__(self) -> None:
        if not is_name(self.tenant):
            raise GrantRefused(f"tenant: expected 1 to 64 letters, digits, - and _, got {self.tenant!r}")
        for origin in self.origins:
            if not is_origin(origin):
                raise GrantRefused(f"origin: expected {ORIGIN_FORM}, got {origin!r}")


class KeyRing:
    """All raise StoreDown."""

    def __init__(self, store: KeyStore, unix_s: Callable[[], float] = time.time) -> None:
        self._store = store
        self._unix_s = unix_s

    async def create(self, grant: Grant, lives_s: float | None = None) -> NewKey:
        """`lives_s` None: until it is revoked."""
        key, now = new_key(), int(self._unix_s())
        expires_at = None if lives_s is None else now + int(lives_s)
        record = KeyRecord(hash=hashed(key.text), created_at=now, expires_at=expires_at, **msgspec.structs.asdict(grant))
        await self._sweep()
        await self._store.put(SHELF, key.key_id, _encoder.encode(record))
        return key

    async def keys(self) -> Mapping[str, KeyRecord]:
        """By id; those that expired lately among them."""
        return await ShelfView(self._store, SHELF, KeyRecord, time.monotonic).records()

    async def revoke(self, key_id: str) -> None:
        """At once, as far as a node looks: see ApiKeys. So do client secrets that it has made. Raises NoSuchKey."""
        if not await self._store.remove(SHELF, key_id):
            raise NoSuchKey(key_id, "which is not there")

    async def rotate(self, key_id: str, grace_s: float) -> NewKey:
        """Another key with the same rights, which lives as long as this one was meant to; this one is good for `grace_s` more.
        Raises NoSuchKey."""
        now, old = int(self._unix_s()), (await self.keys()).get(key_id)
        if old is None:
            raise NoSuchKey(key_id, "which is not there")
        if not old.is_valid(now):
            raise NoSuchKey(key_id, "which has expired: create a new one")
        grant = Grant(**{name: value for name, value in msgspec.structs.asdict(old).items() if name in Grant.__struct_fields__})
        key = await self.create(grant, None if old.expires_at is None else old.expires_at - old.created_at)
        last = now + int(grace_s)
        ends = last if old.expires_at is None else min(last, old.expires_at)
        if not await self._store.replace(SHELF, key_id, _encoder.encode(msgspec.structs.replace(old, expires_at=ends))):
            await self._store.remove(SHELF, key.key_id)  # which nobody has seen yet
            raise NoSuchKey(key_id, "which was revoked a moment ago")
        return key

    async def _sweep(self) -> None:
        for key_id, record in (await self.keys()).items():
            if not record.is_valid(self._unix_s() - KEPT_EXPIRED_S):
                await self._store.remove(SHELF, key_id)
