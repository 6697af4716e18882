"""A small Redis Cluster on loopback: primaries without replicas, all slots covered.

async with running_cluster(folder) as cluster: ... cluster.url
"""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from fakes.redis_server import RedisServer, running_redis
from fakes.session_stores import one_server
from sessions.store.servers import Place
from sessions.store.wire import Reply

SLOTS = 16384


class RedisCluster:
    def __init__(self, servers: Sequence[RedisServer]) -> None:
        self.servers = servers

    @property
    def places(self) -> tuple[Place, ...]:
        return tuple(("127.0.0.1", server.port) for server in self.servers)

    @property
    def url(self) -> str:
        """Of one server: it knows the others."""
        return f"redis+cluster://127.0.0.1:{self.servers[0].port}"

    async def ask(self, number: int, *command: str | bytes | int) -> Reply:
        """The server of that number."""
        wire = one_server(self.places[number])
        try:
            return await wire.ask(*command)
        finally:
            await wire.close()

    async def move_slot(self, slot: int, source: int, target: int, *, half_way: bool = False) -> None:
        """Its keys as well. `half_way`: they are moved, and the slot is still being moved."""
        ids = [await self._id(number) for number in (source, target)]
        await self.ask(target, "CLUSTER", "SETSLOT", slot, "IMPORTING", ids[0])
        await self.ask(source, "CLUSTER", "SETSLOT", slot, "MIGRATING", ids[1])
        keys = await self.ask(source, "CLUSTER", "GETKEYSINSLOT", slot, 1000)
        assert isinstance(keys, list)
        if keys:
            names = [bytes(key) for key in keys if isinstance(key, bytes)]
            await self.ask(source, "MIGRATE", "127.0.0.1", self.places[target][1], "", 0, 5000, "KEYS", *names)
        if not half_way:
            for number in (target, source):
                await self.ask(number, "CLUSTER", "SETSLOT", slot, "NODE", ids[1])

    async def _id(self, number: int) -> bytes:
        found = await self.ask(number, "CLUSTER", "MYID")
        assert isinstance(found, bytes)
        return found

    async def form(self) -> None:
        share = SLOTS // len(self.servers) + 1
        for number in range(len(self.servers)):
            await self.ask(number, "CLUSTER", "ADDSLOTSRANGE", number * share, min((number + 1) * share, SLOTS) - 1)
            await self.ask(number, "CLUSTER", "SET-CONFIG-EPOCH", number + 1)
            await self.ask(number, "CLUSTER", "MEET", *self.places[0])
        async with asyncio.timeout(20):
            for number in range(len(self.servers)):
                while not await self._agrees(number):  # a cluster tells nobody that it has formed
                    pass

    async def _agrees(self, number: int) -> bool:
        info, slots = await self.ask(number, "CLUSTER", "INFO"), await self.ask(number, "CLUSTER", "SLOTS")
        assert isinstance(info, bytes)
        assert isinstance(slots, list)
        return b"cluster_state:ok" in info and len(slots) == len(self.servers)


@asynccontextmanager
async def running_cluster(folder: Path, size: int = 3) -> AsyncGenerator[RedisCluster]:
    options = ("--cluster-enabled", "yes", "--cluster-node-timeout", "2000")
    async with AsyncExitStack() as stack:
        servers = [await stack.enter_async_context(running_redis(folder / str(number), *options)) for number in range(size)]
        cluster = RedisCluster(servers)
        await cluster.form()
        yield cluster
