"""Client secrets: short-lived keys that a server hands to a browser, so that its own key stays with it.

A secret is `ek_<signing key>.<claims>.<signature>`: any node can check it, and none has to remember it. Claims are signed and not
encrypted. They say nothing that the session which they open would not tell its client anyway.
"""

import base64
import binascii
import hashlib
import hmac
import zlib
from collections.abc import Callable

import msgspec

from sessions.identity.api_keys import NotValid
from sessions.identity.principal import ENVIRONMENT_ID, Principal, Scope, raw
from sessions.identity.signing_keys import SigningKey, SigningKeys

PREFIX = "ek_"
LONGEST_CHARACTERS = 6_000
"""It travels in a header, for which servers and proxies have 8 KiB."""
_LARGEST_CLAIMS_BYTES = 1 << 20
SEAL_BYTES = 8

_encoder = msgspec.msgpack.Encoder()


class TooLong(ValueError):
    def __init__(self, characters: int) -> None:
        super().__init__(f"expected a configuration that fits into a secret of {LONGEST_CHARACTERS} characters, got {characters}")


class NotGranted(Exception):
    """A secret was to allow more than the key that makes it does."""

    def __init__(self, field: str, got: str) -> None:
        super().__init__(f"{field}: expected no more than the key that makes the secret allows, got {got!r}")
        self.field = field


class Wish(msgspec.Struct, frozen=True, kw_only=True):
    """What a secret is to allow; None: what its maker does, but of scopes `sessions` alone. `session` is the configuration that
    its sessions begin with, as the edge writes it."""

    seconds: int
    session: bytes = b""
    scopes: frozenset[Scope] | None = None
    kinds: frozenset[str] | None = None
    models: frozenset[str] | None = None
    origins: tuple[str, ...] | None = None
    longest_session_s: float | None = None


class _Claims(msgspec.Struct, frozen=True, array_like=True):
    tenant: str
    maker: str
    scopes: frozenset[Scope]
    kinds: frozenset[str] | None
    models: frozenset[str] | None
    origins: tuple[str, ...]
    expires_at: int
    longest_session_s: float | None
    session: bytes
    seal: bytes = b""
    """Of the key in the environment, where that has made it."""

    def principal(self) -> Principal:
        return Principal(
            tenant=self.tenant,
            key_id=self.maker,
            scopes=self.scopes,
            kinds=self.kinds,
            models=self.models,
            origins=self.origins,
            expires_at=self.expires_at,
            longest_session_s=self.longest_session_s,
            is_secret=True,
            session=self.session,
        )


_decoder = msgspec.msgpack.Decoder(_Claims)


class ClientSecrets:
    """`unix_s` is the wall clock. `environment_key`: what another one has made ends with that, as it has no id of its own."""

    def __init__(self, keys: SigningKeys, unix_s: Callable[[], float], environment_key: str | None = None) -> None:
        self._keys = keys
        self._unix_s = unix_s
        self._environment_key = environment_key

    async def make(self, maker: Principal, wish: Wish) -> tuple[str, int]:
        """The secret, and when it expires, in Unix seconds. Raises NotGranted, TooLong, StoreDown."""
        expires_at = int(self._unix_s()) + wish.seconds
        if maker.expires_at is not None:
            expires_at = min(expires_at, maker.expires_at)
        key = await self._keys.current()
        claims = msgspec.structs.replace(_narrowed(maker, wish, expires_at), seal=self._seal(key, maker.key_id))
        signed = f"{PREFIX}{key.key_id}.{_text(zlib.compress(_encoder.encode(claims), 9))}"
        secret = f"{signed}.{_text(key.signature(signed))}"
        if len(secret) > LONGEST_CHARACTERS:
            raise TooLong(len(secret))
        return secret, expires_at

    async def principal(self, secret: str) -> Principal:
        """`key_id` is that of the maker, which may have been revoked since. Raises NotValid and StoreDown."""
        claims = await self._claims(secret)
        if claims is None:
            raise NotValid("this client secret is not valid here")
        if self._unix_s() >= claims.expires_at:
            raise NotValid("this client secret has expired")
        return claims.principal()

    async def _claims(self, secret: str) -> _Claims | None:
        """None: not of our making. Nothing is unpacked before its signature holds."""
        parts = secret.removeprefix(PREFIX).split(".") if len(secret) <= LONGEST_CHARACTERS and secret.isascii() else []
        key = await self._keys.find(parts[0]) if len(parts) == 3 else None
        if key is None:
            return None
        signed = f"{PREFIX}{parts[0]}.{parts[1]}"
        if not hmac.compare_digest(parts[2], _text(key.signature(signed))):
            return None
        claims = _decoded(parts[1])
        return claims if claims is not None and claims.seal == self._seal(key, claims.maker) else None

    def _seal(self, key: SigningKey, maker: str) -> bytes:
        """Tells nobody anything who has not the signing key: people may have chosen what it is of."""
        if maker != ENVIRONMENT_ID or self._environment_key is None:
            return b""
        return key.signature(hashlib.sha256(raw(self._environment_key)).hexdigest())[:SEAL_BYTES]


def _narrowed(maker: Principal, wish: Wish, expires_at: int) -> _Claims:
    scopes = frozenset((Scope.SESSIONS,)) if wish.scopes is None else wish.scopes
    if Scope.ADMIN in scopes or not scopes <= maker.scopes:
        raise NotGranted("scopes", ", ".join(sorted(scopes)))
    origins = maker.origins if wish.origins is None else wish.origins
    if maker.origins and not (origins and set(origins) <= set(maker.origins)):
        raise NotGranted("origins", ", ".join(origins))
    longest = [each for each in (wish.longest_session_s, maker.longest_session_s) if each is not None]
    return _Claims(
        maker.tenant,
        maker.key_id,
        scopes,
        _part("kinds", maker.kinds, wish.kinds),
        _part("models", maker.models, wish.models),
        origins,
        expires_at,
        min(longest, default=None),
        wish.session,
    )


def _part(field: str, whole: frozenset[str] | None, wanted: frozenset[str] | None) -> frozenset[str] | None:
    if wanted is None:
        return whole
    if whole is not None and not wanted <= whole:
        raise NotGranted(field, ", ".join(sorted(wanted)))
    return wanted


def _decoded(text: str) -> _Claims | None:
    """None: another version of this server has written it."""
    try:
        packed = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
        return _decoder.decode(zlib.decompressobj().decompress(packed, _LARGEST_CLAIMS_BYTES))
    except (binascii.Error, zlib.error, msgspec.MsgspecError):
        return None


def _text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
