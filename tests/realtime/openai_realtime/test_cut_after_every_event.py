"""Whoever is cut off, wherever it is, and says what it has, misses nothing and hears nothing twice."""

import time
from collections import defaultdict
from collections.abc import AsyncGenerator
from pathlib import Path

import msgspec
import pytest
import pytest_asyncio

from fakes.edge import Edge, ServeEdge
from fakes.persistent_client import SOUND, UPDATE, PersistentClient, number, plain, said
from fakes.redis_server import running_redis
from sessions.store.address import open_store
from sessions.store.interface import Store
from sessions.store.memory import MemoryStore
from sessions.store.records import Fence, Write
from strict_client import Event

STEPS = (UPDATE, said("Hello?"), said("And in writing?", output_modalities=["text"]), said("Once more."))
ANSWERS = [("Hello", " there."), ("In", " writing."), ("Good", "bye.")]


async def talk(edges: list[Edge], *cuts: int) -> PersistentClient:
    for edge in edges:
        edge.graph.answers = [*ANSWERS]
    client = PersistentClient(STEPS, lambda returns: edges[returns % len(edges)].url, lambda count: count in cuts)
    await client.talk()
    return client


class Written:
    """All that was ever written down of each session, also what its readers no longer need."""

    def __init__(self) -> None:
        self.events: defaultdict[str, dict[int, bytes]] = defaultdict(dict)

    def watch(self, store: Store) -> Store:
        write = store.write

        async def watched(session_id: str, fence: Fence, wanted: Write) -> None:
            await write(session_id, fence, wanted)
            for entry in wanted.events:
                assert self.events[session_id].setdefault(entry.seq, entry.event) == entry.event

        store.write = watched  # pyright: ignore[reportAttributeAccessIssue]  every store passes through here
        return store


def check_whole(written: Written, client: PersistentClient) -> None:
    """What was written down it has been told, each event once and in order."""
    assert client.numbers == sorted(set(client.numbers))
    journal = written.events[client.greetings[0]["session"]["id"]]
    assert [number(event) for event in client.told] == sorted(journal)
    for event in client.told:
        assert {key: value for key, value in event.items() if key != "resume"} == msgspec.json.decode(journal[number(event)])


async def unbroken(edge: Edge) -> list[Event]:
    client = await talk([edge])
    assert client.returns == 1
    assert [event["response"]["status"] for event in client.told if event["type"] == "response.done"] == ["completed"] * 3
    return client.events


@pytest.fixture
def written() -> Written:
    return Written()


@pytest_asyncio.fixture
async def edge(serve_edge: ServeEdge, written: Written) -> Edge:
    return await serve_edge(store=written.watch(in_memory()))


def in_memory() -> Store:
    return MemoryStore(lambda: time.time_ns() // 1000)


@pytest_asyncio.fixture(params=["memory", "redis"])
async def stores(request: pytest.FixtureRequest, written: Written, tmp_path: Path) -> AsyncGenerator[list[Store]]:
    """Of two nodes: the same one, or a connection each."""
    if request.param == "memory":
        yield [written.watch(in_memory())] * 2
        return
    async with running_redis(tmp_path / "redis") as server, open_store(server.url, 0) as one, open_store(server.url, 0) as other:
        yield [written.watch(one), written.watch(other)]


@pytest_asyncio.fixture
async def nodes(stores: list[Store], serve_edge: ServeEdge) -> list[Edge]:
    return [await serve_edge(store=store, name=name) for store, name in zip(stores, ("one", "other"), strict=True)]


async def test_the_joined_events_are_those_of_a_client_that_was_never_cut_off(edge: Edge, written: Written) -> None:
    whole = await unbroken(edge)
    for count in range(1, len(whole), 5):
        await check_same(edge, written, whole, count)


@pytest.mark.full
async def test_after_every_event(edge: Edge, written: Written) -> None:
    whole = await unbroken(edge)
    for count in range(1, len(whole)):
        await check_same(edge, written, whole, count)
    await check_same(edge, written, whole, *range(1, 200))


async def check_same(edge: Edge, written: Written, whole: list[Event], *cuts: int) -> None:
    client = await talk([edge], *cuts)
    assert plain(client.told) == plain([event for event in whole if event["type"] != SOUND])
    check_whole(written, client)
    assert all("resync" not in greeting for greeting in client.greetings)


@pytest.mark.parametrize("every", [5, pytest.param(1, marks=pytest.mark.full)])
async def test_from_one_node_to_another_nothing_is_lost_or_twice(nodes: list[Edge], written: Written, every: int) -> None:
    whole = await unbroken(nodes[0])
    for count in range(1, len(whole), every):
        client = await talk(nodes, count)
        assert client.returns == 2
        check_whole(written, client)
        done = [event["response"]["status"] for event in client.told if event["type"] == "response.done"]
        assert len(done) == 3
        assert done.count("completed") >= 2
        assert client.greetings[1]["resume"]["state_restored"] is True


async def test_to_and_fro_after_every_event(nodes: list[Edge], written: Written) -> None:
    client = await talk(nodes, *range(1, 100))
    assert client.returns > 10
    check_whole(written, client)
