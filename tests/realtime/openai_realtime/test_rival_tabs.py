"""A session that comes back to a full server waits for a seat: its newest connection does, wherever that is, and no other."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from fakes.edge import Edge, ServeEdge
from sessions.retention.settings import SessionLimits
from sessions.store.memory import MemoryStore
from sessions.store.records import Evicted, News
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


class NoEvictions(MemoryStore):
    """Nobody hears that its seat was lent."""

    async def news(self, node: str, after: str, wait_s: float) -> tuple[str, tuple[News, ...]]:
        after, news = await super().news(node, after, wait_s)
        return after, tuple(each for each in news if not isinstance(each, Evicted))


@pytest.mark.parametrize("store", [MemoryStore, NoEvictions])
async def test_an_operator_closes_a_session_that_waits_for_its_seat(serve_edge: ServeEdge, store: type[MemoryStore]) -> None:
    """Which rests in the store, or is still in memory."""
    edge = await serve_edge(limits=ONE, store=store(lambda: 1_700_000_000_000_000))
    async with unseated(edge) as (created, newcomer), waiting(edge, created) as client:
        session_id = created["session"]["id"]
        async with edge.http.delete(f"{edge.url}/v1/admin/sessions/{session_id}") as answer:
            assert answer.status == 202
        assert (await client.error())["code"] == "session_closed"
        assert await client.closed() == 1000
        await gone(edge, session_id)
        assert (await edge.context.store.census()).waiting == 0
        await alive(newcomer)
        await newcomer.socket.close()
    await edge.idle()


async def test_a_session_that_ends_while_its_client_waits_for_a_seat_takes_none(serve_edge: ServeEdge) -> None:
    edge = await serve_edge(limits=ONE, store=NoEvictions(lambda: 1_700_000_000_000_000))
    async with unseated(edge) as (created, newcomer), waiting(edge, created) as client:
        await edge.context.voice_sessions.delete(created["session"]["id"])
        await newcomer.socket.close()
        assert (await client.error())["code"] == "session_not_found"
        assert await client.closed() == 1008
    await edge.idle()
    assert (await edge.context.store.census()).active == 0


async def gone(edge: Edge, session_id: str) -> None:
    async with asyncio.timeout(10):
        while await edge.context.store.look(session_id) is not None:  # noqa: ASYNC110 (nobody tells)
            await asyncio.sleep(0)


UPGRADE = {
    "Upgrade": "websocket",
    "Connection": "Upgrade",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==",
}
