"""What opens this server: put together from the deployment, the environment and the store."""

import asyncio
import contextlib
import re
import time
from collections.abc import Callable
from pathlib import Path

from realtime.deployment import Deployment
from realtime.exposure import check_exposure, is_exposed
from realtime.settings import API_KEY_VARIABLE, SIGNING_KEY_VARIABLE, ServerSettings, signing_keys, usual_keys_file
from sessions.identity.api_keys import SHELF, ApiKeys
from sessions.identity.client_secrets import ClientSecrets
from sessions.identity.credentials import MADE_HERE, Credentials
from sessions.identity.key_file import KeyFile
from sessions.identity.signing_keys import SHORTEST_CHARACTERS, OwnSigningKeys, SharedSigningKeys, SigningKeys
from sessions.store.interface import KeyStore, StoreDown

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


class KeysWrong(ValueError):
    """The environment sets a key that cannot be used."""


def check_keys(deployment: Deployment, api_key: str | None) -> None:
    """Before anything is served. Raises KeysWrong, ExposureRefused, and KeyFileRefused."""
    if api_key is not None and api_key.startswith(MADE_HERE):
        raise KeysWrong(
            f"{API_KEY_VARIABLE}: expected a key of your own making, got one that begins with {api_key[:3]}: what "
            "`antiphon keys` makes is for clients, and the server knows it already"
        )
    if api_key is not None and _CONTROL.search(api_key):
        raise KeysWrong(f"{API_KEY_VARIABLE}: expected characters that a header can carry, got control characters among them")
    for key in signing_keys():
        if len(key) < SHORTEST_CHARACTERS:
            raise KeysWrong(f"{SIGNING_KEY_VARIABLE}: expected at least {SHORTEST_CHARACTERS} characters, got {len(key)}")
    check_exposure(deployment.server, has_keys=api_key is not None or _may_have_keys(deployment))


def credentials_of(deployment: Deployment, api_key: str | None, shared: KeyStore | None) -> Credentials:
    """`shared`: the store, where several nodes share it; without one the keys are in a file."""
    settings, own = deployment.server, signing_keys()
    keys = ApiKeys(key_file(settings) if shared is None else shared, time.monotonic, time.time)
    if shared is None or own:
        signing: SigningKeys = OwnSigningKeys(own)
    else:
        signing = SharedSigningKeys(shared, time.monotonic, time.time)
    return Credentials(api_key, keys, ClientSecrets(signing, time.time, api_key), exposed=is_exposed(settings))


async def say_if_open(credentials: Credentials, say: Callable[[str], None]) -> None:
    """That no key is asked for, so that nobody is surprised. A store that is down is told of elsewhere."""
    with contextlib.suppress(StoreDown):
        if not await credentials.are_asked_for():
            say("there are no keys: whoever is on this machine may use everything, and nobody else (antiphon keys create)")


def key_file(settings: ServerSettings) -> KeyFile:
    return KeyFile(Path(settings.keys_file) if settings.keys_file else usual_keys_file())


def _may_have_keys(deployment: Deployment) -> bool:
    """Those of a shared store are not looked for: a server that others can reach lets nobody in without one anyway."""
    return deployment.store.is_shared or bool(asyncio.run(key_file(deployment.server).shelf(SHELF)))
