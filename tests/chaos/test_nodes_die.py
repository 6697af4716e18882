"""kill -9 of nodes behind one port, in the middle of answers: clients go on at the others, and nobody hears what is another's."""

import asyncio
import random
import signal
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import openai
import pytest
from openai.resources.realtime.realtime import AsyncRealtimeConnection
from openai.types.websocket_reconnection import ReconnectingEvent, ReconnectingOverrides

from fakes.faithful_client import FaithfulClient
from fakes.quick_nodes import QuickNodes, quick_nodes
from fakes.redis_server import running_redis
from sessions.store.address import open_store
from sessions.store.interface import Store

LEASE_S = 3.0


@asynccontextmanager
async def nodes_at_one_store(folder: Path, nodes: int, times: int) -> AsyncGenerator[tuple[QuickNodes, Store]]:
    async with (
        running_redis(folder / "redis") as redis,
        quick_nodes(folder / "nodes", redis.url, nodes=nodes, times=times, lease_s=LEASE_S) as running,
        open_store(redis.url, LEASE_S) as store,
    ):
        yield running, store
        assert (await running.served.stop(signal.SIGTERM))[0] == 0


async def node_of(store: Store, session_id: str) -> str:
    listed = await store.look(session_id)
    assert listed is not None
    return listed.node


class Created(msgspec.Struct):
    session: dict[str, Any]
    resume: dict[str, Any]


class StockTalk:
    """A user's program around the stock client: it notes the newest token, and gives it when it connects again."""

    def __init__(self, url: str) -> None:
        self.client = openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="none")
        self.session_ids: list[str] = []
        self.heard: list[str] = []
        self.reconnected = 0
        self._token = ""

    @asynccontextmanager
    async def connected(self) -> AsyncGenerator[AsyncRealtimeConnection]:
        async with (
            self.client,
            self.client.realtime.connect(
                model="antiphon-voice", on_reconnecting=self._reconnecting, initial_delay=0.05
            ) as connection,
        ):
            yield connection

    async def until(self, connection: AsyncRealtimeConnection, kind: str) -> None:
        async for event in connection:
            match event.type:
                case "session.created":
                    created = msgspec.convert(event.to_dict(), Created)
                    self._token = created.resume["token"]
                    self.session_ids.append(created.session["id"])
                case "response.output_text.delta":
                    self.heard += event.delta.split()
                case _:
                    pass
            if event.type == kind:
                return
        raise AssertionError(f"the connection ended without {kind}")

    def _reconnecting(self, event: ReconnectingEvent) -> ReconnectingOverrides:
        self.reconnected += 1
        return {"extra_query": {**event.extra_query, "resume": self._token}}


async def test_a_stock_client_goes_on_at_the_other_node(tmp_path: Path) -> None:
    async with nodes_at_one_store(tmp_path, nodes=2, times=40) as (nodes, store):
        talk = StockTalk(nodes.url)
        async with talk.connected() as connection:
            await talk.until(connection, "session.created")
            await connection.session.update(session={"type": "realtime", "output_modalities": ["text"]})
            await connection.conversation.item.create(
                item={"type": "message", "role": "user", "content": [{"type": "input_text", "text": "anna"}]}
            )
            await connection.response.create()
            for _ in range(10):
                await talk.until(connection, "response.output_text.delta")
            before = await node_of(store, talk.session_ids[0])
            await nodes.kill(before)
            await talk.until(connection, "session.created")
            assert await node_of(store, talk.session_ids[0]) != before
            assert talk.session_ids == [talk.session_ids[0]] * 2
            assert talk.reconnected >= 1
            await talk.until(connection, "response.done")  # of the answer that was cut off
            talk.heard.clear()
            await connection.response.create()
            await talk.until(connection, "response.done")
            assert talk.heard == [f"anna.{number}" for number in range(1, 41)]


@pytest.mark.full
@pytest.mark.timeout(300)
@pytest.mark.parametrize("seed", [1, 2])
async def test_nobody_hears_what_is_anothers(tmp_path: Path, seed: int) -> None:
    draw = random.Random(seed)
    async with (
        nodes_at_one_store(tmp_path, nodes=3, times=30) as (nodes, _),
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as http,
    ):
        clients = [FaithfulClient(http, f"canary-{number}") for number in range(64)]
        for client in clients:
            await client.connect(nodes.url)
            await client.introduce()
        async with asyncio.TaskGroup() as group:
            calm = asyncio.Event()
            for client in clients:
                group.create_task(talks_on(client, nodes.url, calm))
            for _ in range(6):
                await draw.choice(clients).hears(draw.randrange(1, 40))
                await nodes.kill(draw.choice(sorted(await nodes.told())))
                await nodes.served.until("ready again")
            calm.set()
        assert [client.heard.foreign for client in clients] == [0] * 64
        assert [(client.heard.lost, client.heard.duplicated) for client in clients] == [(0, 0)] * 64
        assert sum(client.connections for client in clients) > 64


async def talks_on(client: FaithfulClient, url: str, calm: asyncio.Event) -> None:
    """Whatever happens to its node."""
    while not calm.is_set():
        before = client.heard.answers
        with suppress(ConnectionError):
            await client.ask()
            await client.until(lambda before=before: client.heard.answers > before or client.is_broken)
        while client.is_broken:
            await client.come_back(url)
            await client.until(lambda: client.heard.is_answered or client.is_broken)
    await client.leave()
