"""From what a request bears to who it is: the key in the environment, API keys, client secrets, or a server without keys."""

import hmac

from sessions.identity import api_keys, client_secrets
from sessions.identity.api_keys import ApiKeys, NotValid
from sessions.identity.client_secrets import ClientSecrets
from sessions.identity.principal import DEFAULT_TENANT, ENVIRONMENT_ID, LOCAL, Principal, Scope, raw

ENVIRONMENT = Principal(tenant=DEFAULT_TENANT, key_id=ENVIRONMENT_ID, scopes=frozenset(Scope))
"""Whoever bears the key that the server was started with."""
MADE_HERE = (api_keys.PREFIX, client_secrets.PREFIX)
"""What begins so is random and long: nobody guesses it."""


class Credentials:
    """`environment_key`: the one that the server was started with; none that begins as those do which are made here, or it
    would be taken for one. `exposed`: others than this machine reach the server, so that
    it is never open, keys or not."""

    def __init__(self, environment_key: str | None, keys: ApiKeys, secrets: ClientSecrets, *, exposed: bool) -> None:
        if environment_key is not None and environment_key.startswith(MADE_HERE):
            raise ValueError(f"expected a key of your own making, got one that begins with {environment_key[:3]}")
        self.secrets = secrets
        self._environment_key = environment_key
        self._keys = keys
        self._asked = exposed or environment_key is not None

    async def are_asked_for(self) -> bool:
        """Once there was a key, also when the last one is revoked. Raises StoreDown."""
        self._asked = self._asked or await self._keys.exist()
        return self._asked

    def is_guess(self, given: str) -> bool:
        """Whether it may be one at the key in the environment, which people have chosen."""
        return self._environment_key is not None and not given.startswith(MADE_HERE)

    async def principal(self, given: str | None) -> Principal:
        """Raises NotValid and StoreDown."""
        if given is not None and given.startswith(client_secrets.PREFIX):
            return await self._of_secret(given)
        if not await self.are_asked_for():
            return LOCAL
        if given is None:
            raise NotValid("expected a key, got none")
        if given.startswith(api_keys.PREFIX):
            return await self._keys.principal(given)
        if self._environment_key is None or not hmac.compare_digest(raw(given), raw(self._environment_key)):
            raise NotValid("this key is not valid here")
        return ENVIRONMENT

    async def _of_secret(self, secret: str) -> Principal:
        """What a key has made ends with it."""
        principal = await self.secrets.principal(secret)
        if not await self.lives(principal.key_id):
            raise NotValid("the key that made this client secret is no longer valid")
        return principal

    async def lives(self, key_id: str) -> bool:
        """Whether the key behind a principal is good still. Raises StoreDown."""
        if key_id == LOCAL.key_id:
            return not await self.are_asked_for()
        if key_id == ENVIRONMENT.key_id:
            return self._environment_key is not None
        return await self._keys.is_alive(key_id)
