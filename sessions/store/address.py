"""The store that a URL names."""

import os
import ssl
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import msgspec
from redis.asyncio.connection import Connection, ConnectionPool, SSLConnection
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from sessions.store.connection import TIMEOUT_S, StoreConnection
from sessions.store.interface import Store, StoreDown
from sessions.store.library import Library, library
from sessions.store.memory import MemoryStore
from sessions.store.redis import RedisStore
from sessions.store.servers import ClusterServers, OneServer, Place, SentinelServers, Servers
from sessions.store.url import Address, BadAddress, parse

PASSWORD_VARIABLE = "ANTIPHON_STORE_PASSWORD"
SENTINEL_TIMEOUT_S = 0.5
"""Each must have answered within the time that a call has."""


@asynccontextmanager
async def open_store(url: str, settle_s: float) -> AsyncGenerator[Store]:
    """Raises BadAddress, and StoreDown when nobody is there. `settle_s`: how long nodes that live may register what they hold
    after the store has lost its data."""
    address = with_password(parse(url))
    if address.kind == "memory":
        # nobody else has held anything: there is nothing to wait for
        yield MemoryStore(_steady_us(), settle_s=0.0)
        return
    async with connected(address) as connection:
        yield RedisStore(connection, settle_s)


def with_password(address: Address, environment: Mapping[str, str] = os.environ) -> Address:
    """The one in the environment, where the URL has none: a deployment's file is read by many."""
    kept_apart = environment.get(PASSWORD_VARIABLE, "").strip()
    return msgspec.structs.replace(address, password=kept_apart) if kept_apart and address.password is None else address


def _steady_us() -> Callable[[], int]:
    """The time of day, as it goes on from now whatever is done to the clock."""
    ahead_ns = time.time_ns() - time.monotonic_ns()
    return lambda: (time.monotonic_ns() + ahead_ns) // 1000


@asynccontextmanager
async def connected(
    address: Address, functions: Library | None = None, timeout_s: float = TIMEOUT_S
) -> AsyncGenerator[StoreConnection]:
    """Raises StoreDown when nobody is there, BadAddress when `ca` is no file of certificates."""
    _check_ca(address)
    connection = StoreConnection(_servers(address, timeout_s), functions or library(), timeout_s)
    try:
        await _open(connection, address)
        yield connection
    finally:
        await connection.close()


async def _open(connection: StoreConnection, address: Address) -> None:
    """Raises StoreDown, which says where: whoever starts a server is to see what has been looked for."""
    try:
        await connection.open()
    except StoreDown as down:
        raise StoreDown(f"{address}: {down.why}", down.retry_after_s) from None


def _check_ca(address: Address) -> None:
    """The library reads it at each new connection, and would say no more than that there is none."""
    if address.ca is not None:
        try:
            ssl.create_default_context(cafile=address.ca)
        except OSError as wrong:  # an SSLError is one
            raise BadAddress("ca", "a file of certificates in PEM", f"{address.ca} ({wrong.strerror or wrong})") from None


def _servers(address: Address, timeout_s: float) -> Servers:
    pool = partial(_pool, address, timeout_s)
    if address.kind == "cluster":
        return ClusterServers(pool, address.places)
    if address.kind == "sentinel":
        # they have passwords and databases of their own
        sentinels = msgspec.structs.replace(address, user=None, password=None, database=0)
        return SentinelServers(pool, partial(_pool, sentinels, SENTINEL_TIMEOUT_S), address.places, address.service)
    return OneServer(pool, address.places[0])


def _pool(address: Address, timeout_s: float, place: Place, reads_block: bool) -> ConnectionPool:
    options: dict[str, Any] = {
        "host": place[0],
        "port": place[1],
        "db": address.database,
        "username": address.user,
        "password": address.password,
        "socket_timeout": None if reads_block else timeout_s,
        "socket_connect_timeout": timeout_s,
        "retry": Retry(NoBackoff(), 0),  # the lane tries again
        "protocol": 2,
    }
    if address.with_tls:
        return ConnectionPool(SSLConnection, ssl_ca_certs=address.ca, **options)
    return ConnectionPool(Connection, **options)
