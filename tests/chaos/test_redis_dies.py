"""The store of whole servers is flushed, killed and started without its data, or hangs for longer than a lease, while people
talk: they hear everything, once; and who comes back afterwards, also to another node, hears what it missed, or is told that it
cannot."""

import asyncio
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path

import aiohttp
import pytest

from fakes.faithful_client import FaithfulClient
from fakes.quick_nodes import quick_nodes
from fakes.redis_server import RedisServer, running_redis
from fakes.session_stores import one_server
from sessions.store.address import open_store

pytestmark = [pytest.mark.full, pytest.mark.timeout(180)]

LEASE_S = 2.0
CLIENTS = 8
WORDS = 200
"""Of an answer, one each 20 ms: longer than the store hangs."""


async def flushed(redis: RedisServer) -> None:
    wire = one_server(("127.0.0.1", redis.port))
    await wire.ask("FLUSHALL")
    await wire.close()


async def restarted_without_data(redis: RedisServer) -> None:
    await redis.kill()
    await redis.start()


async def away_for_a_while(redis: RedisServer) -> None:
    """The leases hold."""
    await redis.kill()
    await asyncio.sleep(LEASE_S / 3)
    await redis.start()


async def hangs_past_the_leases(redis: RedisServer) -> None:
    redis.signal(signal.SIGSTOP)
    await asyncio.sleep(1.5 * LEASE_S)
    redis.signal(signal.SIGCONT)


@pytest.mark.parametrize("fails", [flushed, restarted_without_data, away_for_a_while, hangs_past_the_leases])
async def test_nothing_is_lost_without_a_word(tmp_path: Path, fails: Callable[[RedisServer], Awaitable[None]]) -> None:
    async with (
        running_redis(tmp_path / "redis") as redis,
        quick_nodes(tmp_path / "nodes", redis.url, nodes=2, times=WORDS, lease_s=LEASE_S) as nodes,
        open_store(redis.url, LEASE_S) as store,
        aiohttp.ClientSession() as http,
    ):
        clients = [FaithfulClient(http, f"client-{number}") for number in range(CLIENTS)]
        for client in clients:
            await client.connect(nodes.url)
            await client.introduce()
        for client in clients:
            await client.ask()
            await client.hears(10)
        await fails(redis)
        await asyncio.gather(*(client.all_answered() for client in clients))
        assert [client.heard.words for client in clients] == [WORDS] * CLIENTS
        for client in clients:
            await client.ask()
            await client.hears(10)
            await client.drop()
            await client.come_back(nodes.url)
        await asyncio.gather(*(client.all_answered() for client in clients))
        for client in clients:
            await client.ask()
            await client.hears(10)
        listed = await store.look(clients[0].session_id)
        assert listed is not None
        there = [client for client in clients if (seen := await store.look(client.session_id)) and seen.node == listed.node]
        await nodes.kill(listed.node)
        await asyncio.gather(*(client.gone() for client in there))
        for client in there:
            await client.come_back(nodes.url)
        await asyncio.gather(*(client.all_answered() for client in clients))
        assert [(client.heard.lost, client.heard.duplicated) for client in clients] == [(0, 0)] * CLIENTS
        census = await store.census()
        assert census.active == CLIENTS
