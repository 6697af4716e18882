"""What a tenant is billed when a node dies in the middle of an answer, on a real Redis whose clock the test moves."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest

from fakes.cable import laid_cable
from fakes.edge import Edge, edge_context, serving
from fakes.graph import FakeGraph, tone
from fakes.redis_server import running_redis
from fakes.store_time import CLOCK_LUA
from fakes.whole_store import TimedStore, in_redis
from sessions.retention.orphans import Orphans
from sessions.store.address import connected
from sessions.store.interface import Store
from sessions.store.library import library
from sessions.store.redis import RedisStore
from sessions.store.url import parse
from strict_client import Event

LEASE_S, GRACE_S = 10, 60


class Died:
    """A node that died while `created` was being answered; `written` is what the store has of the session's usage."""

    def __init__(self, timed: TimedStore, created: Event, written: Mapping[str, float]) -> None:
        self.timed = timed
        self.created = created
        self.written = written

    async def bill(self) -> Mapping[str, float]:
        return (await self.timed.store.bills()).get("local", {})


@asynccontextmanager
async def an_edge(graph: FakeGraph, store: Store, name: str) -> AsyncGenerator[Edge]:
    context = edge_context(graph, store=store, name=name)
    async with serving(context) as url, aiohttp.ClientSession() as http:
        yield Edge(context, graph, url, http)


@asynccontextmanager
async def died(graph: FakeGraph, folder: Path) -> AsyncGenerator[Died]:
    async with (
        running_redis(folder) as server,
        in_redis(server.url) as timed,
        laid_cable(server.port) as cable,
        connected(parse(cable.url), library(CLOCK_LUA)) as connection,
        an_edge(graph, RedisStore(connection, settle_s=0.0), "edge-1") as edge,
        edge.socket() as client,
    ):
        graph.answers = [("Well, ", "that is ", "a long ", "story.")]
        gate = graph.hold("text")
        created = await client.until("session.created")
        await client.append(tone(500))
        await client.send("input_audio_buffer.commit")
        await client.send("response.create")
        await graph.wait_for(lambda: bool(graph.of("thinker")))
        gate.step(2)
        while (await client.until("response.output_audio_transcript.delta"))["delta"] != "that is ":
            pass
        await told_to(timed, created)
        cable.cut()
        left = await timed.store.look(created["session"]["id"])
        assert left is not None
        yield Died(timed, created, left.usage)
        gate.release()


async def told_to(timed: TimedStore, created: Event) -> None:
    """Until sound is written, too, and something is billed."""
    async with asyncio.timeout(5):
        while True:
            left = await timed.store.look(created["session"]["id"])
            if left is not None and left.usage.get("audio_out_s") and await timed.store.bills():
                return


async def test_the_bill_of_a_dead_node_is_what_its_journal_had(graph: FakeGraph, tmp_path: Path) -> None:
    async with died(graph, tmp_path) as dead:
        assert (dead.written["audio_in_s"], dead.written["tokens_out"]) == (0.5, 2)
        before = await dead.bill()
        assert all(before[what] <= dead.written[what] for what in before)
        await dead.timed.pass_s(LEASE_S + GRACE_S + 2)
        store, session_id = dead.timed.store, dead.created["session"]["id"]
        orphans = Orphans(store, "other", 1, lambda session_id: store.end(session_id, None))
        for _ in range(2):
            await orphans.sweep()
            assert await dead.bill() == pytest.approx(dead.written)
            assert await store.look(session_id) is None
            await dead.timed.pass_s(LEASE_S + GRACE_S)


async def test_whoever_takes_it_over_goes_on_counting_from_there(graph: FakeGraph, tmp_path: Path) -> None:
    async with died(graph, tmp_path) as dead:
        await dead.timed.pass_s(LEASE_S + 1)
        async with (
            an_edge(FakeGraph(), dead.timed.store, "edge-2") as other,
            other.socket(f"/v1/realtime?resume={dead.created['resume']['token']}") as client,
        ):
            await client.until("session.created")
            await client.append(tone(250))
            await client.send("input_audio_buffer.clear")
            await client.until("input_audio_buffer.cleared")
        bill = await dead.bill()
        assert bill["audio_in_s"] == pytest.approx(dead.written["audio_in_s"] + 0.25)
        assert {what: bill[what] for what in bill if what != "audio_in_s"} == pytest.approx(
            {what: dead.written[what] for what in dead.written if what != "audio_in_s"}
        )
