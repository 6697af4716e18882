"""Keys in Redis: what one node makes every node knows, and while Redis is away what was known is believed."""

import asyncio
import signal
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from fakes.redis_server import RedisServer, running_redis
from sessions.identity.api_keys import ApiKeys, NotValid
from sessions.identity.client_secrets import ClientSecrets, Wish
from sessions.identity.credentials import Credentials
from sessions.identity.key_ring import Grant, KeyRing
from sessions.identity.shelf_view import FRESH_S, STALE_S
from sessions.identity.signing_keys import SharedSigningKeys
from sessions.store.address import open_store
from sessions.store.interface import KeyStore, StoreDown


class Node:
    """`ahead_s`: by how much its clock runs before that of the others; the monotonic one is moved by `passes`."""

    def __init__(self, store: KeyStore, ahead_s: float = 0.0) -> None:
        self.store = store
        self._passed_s = 0.0
        self._ahead_s = ahead_s
        keys = ApiKeys(store, self._monotonic_s, self._unix_s)
        secrets = ClientSecrets(SharedSigningKeys(store, self._monotonic_s, self._unix_s), self._unix_s)
        self.opened = Credentials(None, keys, secrets, exposed=True)

    def passes(self, seconds: float) -> None:
        self._passed_s += seconds

    def _monotonic_s(self) -> float:
        return time.monotonic() + self._passed_s

    def _unix_s(self) -> float:
        return time.time() + self._ahead_s


@asynccontextmanager
async def node(redis: RedisServer, ahead_s: float = 0.0) -> AsyncGenerator[Node]:
    async with open_store(redis.url, 0.0) as store:
        yield Node(store, ahead_s)


async def test_every_node_knows_the_keys_and_secrets_of_the_others(tmp_path: Path) -> None:
    async with running_redis(tmp_path) as redis, node(redis) as one, node(redis, ahead_s=300) as other:
        ring = KeyRing(one.store)
        key = await ring.create(Grant(tenant="acme"))
        makers = await asyncio.gather(one.opened.principal(key.text), other.opened.principal(key.text))
        made = await asyncio.gather(
            *(each.opened.secrets.make(maker, Wish(seconds=3_600)) for each, maker in zip((one, other), makers, strict=True))
        )
        assert len(await one.store.shelf("signing_keys")) == 1
        for secret, _ in made:
            for each in (one, other):
                assert (await each.opened.principal(secret)).tenant == "acme"
        await ring.revoke(key.key_id)
        for each in (one, other):
            each.passes(FRESH_S + 0.1)
            for bearer in (key.text, made[0][0], made[1][0]):
                with pytest.raises(NotValid):
                    await each.opened.principal(bearer)


async def test_while_redis_hangs_what_was_known_is_believed_and_then_nobody_is_let_in(tmp_path: Path) -> None:
    async with running_redis(tmp_path) as redis, node(redis) as one:
        key = await KeyRing(one.store).create(Grant(tenant="acme"))
        await one.opened.principal(key.text)
        redis.signal(signal.SIGSTOP)
        try:
            one.passes(FRESH_S + 0.1)
            looking = asyncio.create_task(one.opened.principal(key.text))
            await asyncio.sleep(0)
            started = time.monotonic()
            assert (await one.opened.principal(key.text)).tenant == "acme"
            assert time.monotonic() - started < 0.1  # it does not wait with the one that looks
            assert (await looking).tenant == "acme"
            one.passes(STALE_S)
            with pytest.raises(StoreDown):
                await one.opened.principal(key.text)
        finally:
            redis.signal(signal.SIGCONT)
        one.passes(1.1)
        assert (await one.opened.principal(key.text)).tenant == "acme"


async def test_a_key_is_in_redis_as_its_hash(tmp_path: Path) -> None:
    async with running_redis(tmp_path, "--appendonly", "yes") as redis, node(redis) as one:
        key = await KeyRing(one.store).create(Grant(tenant="acme"))
        secret, _ = await one.opened.secrets.make(await one.opened.principal(key.text), Wish(seconds=60))
        await redis.kill()
        kept = b"".join([path.read_bytes() for path in await asyncio.to_thread(lambda: [*tmp_path.rglob("*.aof")])])
        assert key.key_id.encode() in kept
        assert key.text.rpartition("_")[2].encode() not in kept
        assert secret.encode() not in kept
