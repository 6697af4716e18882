"""From a socket on one node to a call on another, and back."""

import pytest_asyncio

from fakes.edge import Edge, ServeEdge
from fakes.returning import ask, called
from fakes.rtc_client import RtcClient
from realtime.media.client import MediaClient
from sessions.store.memory import MemoryStore


@pytest_asyncio.fixture
async def nodes(serve_edge: ServeEdge, media: MediaClient) -> list[Edge]:
    store = MemoryStore(lambda: 1_700_000_000_000_000)
    return [await serve_edge(store=store, name=name, call_media=media) for name in ("one", "other")]


async def test_a_conversation_goes_from_a_socket_to_a_call_on_another_node_and_back(nodes: list[Edge]) -> None:
    one, other = nodes
    async with one.connect() as client, RtcClient() as caller:
        created = client.seen[0]
        await client.write("Hello?")
        await client.until("conversation.item.done")
        again = await called(other, caller, created)
        assert (await client.error())["code"] == "superseded"
        assert [item["content"][0]["text"] for item in again["resync"]["items"]] == ["Hello?"]
        await ask(caller)
        async with one.socket(f"/v1/realtime?resume={again['resume']['token']}") as last:
            items = (await last.until("session.created"))["resync"]["items"]
            assert [item["role"] for item in items] == ["user", "user", "assistant"]
