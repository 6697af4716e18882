"""Two nodes and one session: the newest connection has it, wherever it is, and nobody else says anything for it."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from urllib.parse import urlencode

import aiohttp
import msgspec
import pytest
import pytest_asyncio

from fakes.cut_store import CutStore
from fakes.edge import Edge, ServeEdge
from sessions.retention.resume_tokens import hashed
from sessions.retention.sealing import KEY_VARIABLE
from sessions.store.memory import MemoryStore
from strict_client import Event, StrictClient, alive


@pytest_asyncio.fixture
async def nodes(serve_edge: ServeEdge) -> list[Edge]:
    store = MemoryStore(lambda: 1_700_000_000_000_000)
    return [await serve_edge(store=store, name=name) for name in ("one", "other")]


@asynccontextmanager
async def back(node: Edge, created: Event) -> AsyncGenerator[tuple[StrictClient, Event]]:
    async with node.socket(f"/v1/realtime?resume={created['resume']['token']}") as client:
        yield client, await client.until("session.created")


async def superseded(client: StrictClient) -> None:
    assert (await client.error())["code"] == "superseded"
    assert await client.closed() == 4409


async def test_of_two_tabs_at_two_nodes_the_newest_wins_and_neither_fights(nodes: list[Edge]) -> None:
    one, other = nodes
    async with one.socket() as first:
        created = await first.until("session.created")
        async with back(other, created) as (second, again):
            await superseded(first)
            assert again["session"]["id"] == created["session"]["id"]
            assert one.context.voice_sessions.sessions() == ()
            await alive(second)
            async with back(one, again) as (third, _):
                await superseded(second)
                await alive(third)
    for node in nodes:
        await node.idle()


async def test_a_node_that_never_heard_that_it_has_a_session_does_not_keep_it_from_the_others(nodes: list[Edge]) -> None:
    one, other = nodes
    async with one.connect() as first:
        created = first.seen[0]
        await first.socket.close(code=1001)
    await one.left_alone()
    session_id, secret = created["resume"]["token"].split(".")
    await one.context.voice_sessions.put_down(session_id)
    await one.context.store.claim(session_id, "one", 10, hashed(secret), hashed("an answer that was lost"))
    async with back(other, created) as (second, _):
        await alive(second)


async def test_an_owner_that_was_taken_for_dead_says_nothing_more(nodes: list[Edge]) -> None:
    one, other = nodes
    async with one.socket() as first:
        created = await first.until("session.created")
        session_id = created["session"]["id"]
        await one.context.store.disown(session_id, "one")
        async with back(other, created) as (second, came):
            await first.write("Is anybody there?")
            await superseded(first)
            assert "conversation.item.added" not in first.types()
            await second.write("Yes.")
            await second.until("conversation.item.done")
            await second.socket.close(code=1001)
        async with back(other, came) as (_, again):
            (item,) = again["resync"]["items"]
            assert item["content"][0]["text"] == "Yes."
    assert one.context.voice_sessions.sessions() == ()


async def test_the_configuration_goes_with_the_session(nodes: list[Edge]) -> None:
    one, other = nodes
    async with one.connect() as client:
        created = client.seen[0]
        wish = {"instructions": "Sing.", "tracing": "auto", "audio": {"output": {"format": {"type": "audio/pcmu"}}}}
        await client.send("session.update", session=wish)
        changed = await client.until("session.updated")
        await client.socket.close(code=1001)
    async with back(other, created) as (_, again):
        assert again["session"] == changed["session"]


async def test_what_was_deleted_nobody_comes_back_to(nodes: list[Edge]) -> None:
    one, other = nodes
    async with one.connect() as client:
        created = client.seen[0]
        await client.socket.close(code=1001)
    await one.left_alone()
    assert await one.context.voice_sessions.delete(created["session"]["id"])
    with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
        async with back(other, created):
            pass
    assert refused.value.status == 404


@pytest.mark.parametrize("last_seq", ["-1", "x", "1" * 16, "1.5"])
async def test_a_number_that_is_none_is_refused_by_name(edge: Edge, last_seq: str) -> None:
    async with edge.connect() as client:
        token = client.seen[0]["resume"]["token"]
        with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
            async with edge.socket(f"/v1/realtime?resume={token}&last_seq={last_seq}"):
                pass
        assert refused.value.status == 400
        await alive(client)


@pytest.mark.parametrize("last_seq", [99, 10**14])
async def test_who_claims_to_have_more_than_was_said_is_told_anew(edge: Edge, last_seq: int) -> None:
    async with edge.connect() as client:
        token = client.seen[0]["resume"]["token"]
        await client.socket.close(code=1001)
    async with edge.socket(f"/v1/realtime?resume={token}&last_seq={last_seq}") as client:
        assert "resync" in await client.until("session.created")
        await alive(client)


async def test_with_a_key_nothing_that_is_said_stands_in_the_store_in_plain(
    monkeypatch: pytest.MonkeyPatch, serve_edge: ServeEdge
) -> None:
    monkeypatch.setenv(KEY_VARIABLE, "a secret")
    store = CutStore(lambda: 1_700_000_000_000_000)
    one, other = [await serve_edge(store=store, name=name) for name in ("one", "other")]
    async with one.connect() as first:
        created = first.seen[0]
        await first.write("Paris?")
        await first.send("conversation.item.delete", event_id="e1", item_id="Paris")
        await first.error()
        await first.socket.close(code=1001)
    after = {"resume": created["resume"]["token"], "last_seq": created["resume"]["seq"]}
    async with other.socket(f"/v1/realtime?{urlencode(after)}") as second:
        assert "resync" not in await second.until("session.created")
        assert [await second.next() for _ in first.seen[1:]] == first.seen[1:]
        await second.send("conversation.item.delete", event_id="e1", item_id="Paris")
        assert "'Paris'" in (await second.error())["message"]
    written = msgspec.msgpack.encode(store.written)
    assert len(written) > 1_000
    assert b"Paris" not in written
