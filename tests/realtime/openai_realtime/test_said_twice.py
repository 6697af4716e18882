"""A client that does not know whether it was heard says it again under the same `event_id`: it is done once."""

from typing import Any

import pytest_asyncio

from fakes.edge import Edge, ServeEdge
from sessions.store.memory import MemoryStore
from sessions.store.session_limits import LONGEST_EVENT_ID
from strict_client import Event, StrictClient, alive

ITEM = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hello?"}]}


@pytest_asyncio.fixture
async def nodes(serve_edge: ServeEdge) -> list[Edge]:
    store = MemoryStore(lambda: 1_700_000_000_000_000)
    return [await serve_edge(store=store, name=name) for name in ("one", "other")]


async def items(client: StrictClient) -> int:
    await alive(client)
    return client.types().count("conversation.item.added")


async def refused(client: StrictClient) -> Event:
    await client.send("conversation.item.delete", event_id="twice", item_id="nobody")
    return await client.error()


async def say(client: StrictClient, **fields: Any) -> None:
    await client.send("conversation.item.create", item=ITEM, **fields)


async def test_what_was_obeyed_is_not_done_again(edge: Edge) -> None:
    async with edge.connect() as client:
        await say(client, event_id="a")
        await say(client, event_id="a")
        await say(client, event_id="b")
        await say(client)
        await say(client)
        assert await items(client) == 4


async def test_what_was_refused_is_answered_as_before(edge: Edge) -> None:
    async with edge.connect() as client:
        first = await refused(client)
        assert first["event_id"] == "twice"
        assert await refused(client) == first


async def test_an_id_that_is_too_long_to_be_kept_is_new_each_time(edge: Edge) -> None:
    async with edge.connect() as client:
        for length, expected in ((LONGEST_EVENT_ID, 1), (LONGEST_EVENT_ID + 1, 3)):
            await say(client, event_id="x" * length)
            await say(client, event_id="x" * length)
            assert await items(client) == expected


async def test_another_node_knows_what_was_answered(nodes: list[Edge]) -> None:
    async with nodes[0].connect() as client:
        token = client.seen[0]["resume"]["token"]
        await say(client, event_id="a")
        first = await refused(client)
        await client.socket.close(code=1001)
    async with nodes[1].socket(f"/v1/realtime?resume={token}") as client:
        assert len((await client.until("session.created"))["resync"]["items"]) == 1
        await say(client, event_id="a")
        assert await refused(client) == first
        assert await items(client) == 0
        await say(client, event_id="b")
        assert await items(client) == 1
