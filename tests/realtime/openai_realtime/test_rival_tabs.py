"""A session that comes back to a full server waits for a seat: its newest connection does, wherever that is, and no other."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from fakes.edge import Edge, ServeEdge
from sessions.retention.settings import SessionLimits
from sessions.store.memory import MemoryStore
from strict_client import Event, StrictClient, alive

ONE = SessionLimits(maximum_sessions=1)


@asynccontextmanager
async def unseated(edge: Edge) -> AsyncGenerator[tuple[Event, StrictClient]]:
    """`session.created` of a session whose seat somebody else has now, and who has it."""
    async with edge.connect() as first:
        created = first.seen[0]
        await first.socket.close(code=1001)
    await edge.left_alone()
    async with edge.connect() as newcomer:
        yield created, newcomer


@asynccontextmanager
async def waiting(edge: Edge, created: Event) -> AsyncGenerator[StrictClient]:
    """Who has to wait is upgraded first, and hears nothing yet."""
    async with edge.socket(f"/v1/realtime?resume={created['resume']['token']}") as client:
        assert (await edge.context.store.census()).waiting == 1
        yield client


async def superseded(client: StrictClient) -> None:
    assert (await client.error())["code"] == "superseded"
    assert await client.closed() == 4409


async def test_of_two_tabs_that_wait_for_one_session_the_newest_waits_on(serve_edge: ServeEdge) -> None:
    edge = await serve_edge(limits=ONE)
    async with unseated(edge) as (created, newcomer), waiting(edge, created) as older, waiting(edge, created) as newer:
        await superseded(older)
        assert (await edge.context.store.census()).waiting == 1
        await newcomer.socket.close()
        again = await newer.until("session.created")
        assert again["session"]["id"] == created["session"]["id"]
        await alive(newer)
    await edge.idle()


async def test_a_tab_at_another_node_has_the_session_for_which_the_first_still_waits(serve_edge: ServeEdge) -> None:
    store = MemoryStore(lambda: 1_700_000_000_000_000)
    one, other = [await serve_edge(store=store, name=name, limits=ONE) for name in ("one", "other")]
    async with unseated(one) as (created, newcomer), waiting(one, created) as older:
        async with other.socket(f"/v1/realtime?resume={created['resume']['token']}") as newer:
            again = await newer.until("session.created")
            assert again["session"]["id"] == created["session"]["id"]
            await superseded(older)
            await alive(newer)
        assert (await store.census()).waiting == 0
        await alive(newcomer)
    for node in (one, other):
        await node.idle()


async def test_a_wrong_token_moves_nobody_who_waits(serve_edge: ServeEdge) -> None:
    edge = await serve_edge(limits=ONE)
    async with unseated(edge) as (created, newcomer), waiting(edge, created) as older:
        async with edge.http.get(f"{edge.url}/v1/realtime?resume={created['resume']['token']}x", headers=UPGRADE) as refused:
            assert refused.status == 404
        await newcomer.socket.close()
        await older.until("session.created")
    await edge.idle()


UPGRADE = {
    "Upgrade": "websocket",
    "Connection": "Upgrade",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==",
}
