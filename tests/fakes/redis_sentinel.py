"""A primary, a replica and three Sentinels on loopback, two of whom have to agree.

async with running_sentinels(folder) as watched: ... watched.url, watched.primary.kill()
"""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from fakes.redis_server import RedisServer, running_redis
from fakes.session_stores import one_server
from sessions.store.wire import Reply

SERVICE = "antiphon"
DOWN_AFTER_MS = 500


class Sentinel(RedisServer):
    ready = b"+monitor"

    def __init__(self, folder: Path, watched_port: int) -> None:
        super().__init__(folder)
        folder.mkdir(parents=True)
        self._configuration = folder / "sentinel.conf"
        self._configuration.write_text(
            f"sentinel monitor {SERVICE} 127.0.0.1 {watched_port} 2\n"
            f"sentinel down-after-milliseconds {SERVICE} {DOWN_AFTER_MS}\n"
            f"sentinel failover-timeout {SERVICE} 3000\n"
        )

    def _stated(self) -> tuple[str, ...]:
        return (
            str(self._configuration),
            "--sentinel",
            "--port",
            str(self.port),
            "--bind",
            "127.0.0.1",
            "--dir",
            str(self.folder),
        )


class Watched:
    def __init__(self, primary: RedisServer, replica: RedisServer, sentinels: Sequence[RedisServer]) -> None:
        self.primary = primary
        self.replica = replica
        self.sentinels = sentinels

    @property
    def url(self) -> str:
        hosts = ",".join(f"127.0.0.1:{sentinel.port}" for sentinel in self.sentinels)
        return f"redis+sentinel://{hosts}/{SERVICE}"

    async def ask(self, server: RedisServer, *command: str | bytes | int) -> Reply:
        wire = one_server(("127.0.0.1", server.port))
        try:
            return await wire.ask(*command)
        finally:
            await wire.close()

    async def settled(self) -> None:
        """The replica is linked, and each Sentinel knows it and the two others."""
        async with asyncio.timeout(30):
            while b"master_link_status:up" not in _bytes(await self.ask(self.replica, "INFO", "replication")):
                pass  # nobody tells
            for sentinel in self.sentinels:
                while b"slaves=1,sentinels=3" not in _bytes(await self.ask(sentinel, "INFO", "sentinel")):
                    pass


def _bytes(reply: Reply) -> bytes:
    assert isinstance(reply, bytes)
    return reply


@asynccontextmanager
async def running_sentinels(folder: Path) -> AsyncGenerator[Watched]:
    async with AsyncExitStack() as stack:
        primary = await stack.enter_async_context(running_redis(folder / "primary", "--repl-diskless-sync-delay", "0"))
        of_primary = ("--replicaof", "127.0.0.1", str(primary.port))
        replica = await stack.enter_async_context(running_redis(folder / "replica", *of_primary))
        sentinels = [Sentinel(folder / f"sentinel{number}", primary.port) for number in range(3)]
        for sentinel in sentinels:
            await sentinel.start()
            stack.push_async_callback(sentinel.kill)
        watched = Watched(primary, replica, sentinels)
        await watched.settled()
        yield watched
