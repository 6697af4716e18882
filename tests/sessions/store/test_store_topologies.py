"""The whole store on a Cluster and behind Sentinel: a slot that moves, a server or a primary that dies."""

import asyncio
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import pytest
from redis.crc import key_slot
from redis.exceptions import ConnectionError

from fakes.redis_cluster import SLOTS, RedisCluster, running_cluster
from fakes.redis_sentinel import Watched, running_sentinels
from fakes.redis_server import RedisServer
from sessions.store.address import connected, open_store
from sessions.store.interface import Store, StoreDown
from sessions.store.records import Claimed, Entry, Order, SessionRecord, Write
from sessions.store.url import parse

pytestmark = [pytest.mark.full, pytest.mark.timeout(120)]

LEASE_S = 10.0
TOKEN = b"t" * 32


def record(session_id: str) -> SessionRecord:
    return SessionRecord(session_id=session_id, tenant="t", kind="voice", model="m", life_s=3600, grace_s=600)


def slot_of(session_id: str) -> int:
    return key_slot(f"{{{session_id}}}:head".encode())


def id_on(cluster: RedisCluster, number: int) -> str:
    share = SLOTS // len(cluster.servers) + 1
    return next(f"s{n}" for n in range(10_000) if slot_of(f"s{n}") // share == number)


async def test_the_whole_store_on_a_cluster(cluster: RedisCluster):
    async with open_store(cluster.url, 0.0) as store:
        fences = {f"s{n}": await store.open(record(f"s{n}"), "a", LEASE_S, TOKEN) for n in range(60)}
        assert all((await store.renew_owned(fences, LEASE_S)).values())
        assert len(await store.sessions("t", "", 100)) == 60
        await store.order("a", Order("drain", ""))
        for session_id, fence in fences.items():
            await store.end(session_id, fence)
        assert await store.sessions(None, "", 100) == ()
    async with asyncio.TaskGroup() as group:
        loaded = [group.create_task(cluster.ask(number, "FUNCTION", "LIST")) for number in range(3)]
    assert all(task.result() for task in loaded)


async def test_a_slot_that_moves_is_followed(cluster: RedisCluster):
    session_id = id_on(cluster, 0)
    slot = slot_of(session_id)
    async with open_store(cluster.url, 0.0) as store:
        fence = await store.open(record(session_id), "a", LEASE_S, TOKEN)
        await store.write(session_id, fence, Write(events=(Entry(1, b"x"),), inputs=(b"in",), snapshot=b"s", results={"e": b"r"}))
        await cluster.move_slot(slot, 0, 1, half_way=True)
        await store.write(session_id, fence, Write(events=(Entry(2, b"y"),)))  # by ASK
        assert len((await store.missed(session_id, fence, 0)).events) == 2
        await cluster.move_slot(slot, 0, 1)
        await store.write(session_id, fence, Write(events=(Entry(3, b"z"),)))  # by MOVED
        assert (await store.missed(session_id, fence, 0)).events == (Entry(1, b"x"), Entry(2, b"y"), Entry(3, b"z"))
        await store.end(session_id, fence)
        await cluster.move_slot(slot, 1, 0)
        await store.open(record(session_id), "b", LEASE_S, TOKEN)
        await store.end(session_id, None)


async def test_a_server_of_a_cluster_that_hangs_holds_up_only_its_own_sessions(tmp_path: Path):
    async with running_cluster(tmp_path) as cluster, connected(parse(cluster.url), timeout_s=0.5) as connection:
        await asyncio.gather(*(connection.call("session_look", (f"{{{id_on(cluster, n)}}}:head",)) for n in range(3)))
        cluster.servers[1].signal(signal.SIGSTOP)
        try:
            hanging = asyncio.create_task(connection.call("session_look", (f"{{{id_on(cluster, 1)}}}:head",)))
            for _ in range(50):
                assert await connection.call("session_look", (f"{{{id_on(cluster, 2)}}}:head",)) == [b"unknown"]
            assert not hanging.done()
            with pytest.raises(StoreDown):
                await hanging
        finally:
            cluster.servers[1].signal(signal.SIGCONT)


T = TypeVar("T")


async def retried(call: Callable[[], Awaitable[T]]) -> T:
    async with asyncio.timeout(30):
        while True:
            try:
                return await call()
            except StoreDown:
                continue


async def test_a_failover_of_sentinel_is_followed(tmp_path: Path):
    async with running_sentinels(tmp_path) as watched, open_store(watched.url, 0.0) as store:
        fence = await store.open(record("s1"), "a", LEASE_S, TOKEN)
        await store.write("s1", fence, Write(events=(Entry(1, b"x"),), snapshot=b"s"))
        reading = asyncio.create_task(store.news("a", "", 60))
        await watched.ask(watched.primary, "WAIT", 1, 5000)
        await watched.primary.kill()
        with pytest.raises(StoreDown):
            await reading
        claimed = await retried(lambda: store.claim("s1", "a", LEASE_S, TOKEN, b"o" * 32, above=fence))
        assert isinstance(claimed, Claimed)
        assert claimed.fence > fence
        assert (await store.missed("s1", claimed.fence, 0)).events == (Entry(1, b"x"),)
        # the one that comes back is made a replica: nobody writes to it
        await watched.primary.start()
        await store.write("s1", claimed.fence, Write(events=(Entry(2, b"y"),)))
        assert await _listed(store) == ["s1"]


async def _listed(store: Store) -> list[str]:
    return [listed.record.session_id for listed in await store.sessions(None, "", 10)]


async def test_a_demoted_primary_is_left(tmp_path: Path):
    async with running_sentinels(tmp_path) as watched, open_store(watched.url, 0.0) as store:
        fence = await store.open(record("s1"), "a", LEASE_S, TOKEN)
        await watched.ask(watched.primary, "WAIT", 1, 5000)
        await watched.ask(watched.sentinels[0], "SENTINEL", "FAILOVER", "antiphon")
        async with asyncio.timeout(30):
            while await _role(watched, watched.primary) != b"role:slave":
                pass
        await retried(lambda: store.write("s1", fence, Write(events=(Entry(1, b"x"),))))
        assert (await retried(lambda: store.missed("s1", fence, 0))).events == (Entry(1, b"x"),)


async def _role(watched: Watched, server: RedisServer) -> bytes:
    try:
        info = await watched.ask(server, "INFO", "replication")
    except ConnectionError:
        return b"changing"  # it drops its connections
    assert isinstance(info, bytes)
    return info.split(b"\r\n")[1]


async def test_no_sentinel_and_an_unknown_service(tmp_path: Path):
    async with running_sentinels(tmp_path) as watched:
        for sentinel in watched.sentinels[:2]:
            await sentinel.kill()
        async with open_store(watched.url, 0.0) as store:
            assert await store.sessions(None, "", 10) == ()
        with pytest.raises(StoreDown, match="primary"):
            async with open_store(watched.url.replace("/antiphon", "/nobody"), 0.0):
                pass
