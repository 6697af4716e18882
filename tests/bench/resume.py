"""Clients whose connection breaks, or whose node dies, in the middle of an answer: how soon they hear more, and whether anything
is lost or comes twice.

    tests/run bench resume [--short]

Prints one JSON object as its last line, and fails when an event was lost or came twice, or more sessions ran than there is room
for. Whole servers over a real Redis, with a mind that repeats what it is told; the clients try again every 20 ms. Times are in
milliseconds from the break to the first event. `other_node`: kill -9 of one node of two behind a front. `lease_end`: of a server
that shares the store with another and has no front, counted from the end of the dead one's lease. `storm_s`: until all clients of
a node that died have their session again, or know that they have to wait. `journal`: what events wait to be written down first.
"""

import asyncio
import random
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import msgspec

from bench.command import chosen, note, reported
from bench.metrics_page import journal_waits
from bench.voice import percentile
from fakes.faithful_client import FaithfulClient
from fakes.quick_nodes import QuickNodes, quick_nodes
from fakes.redis_server import running_redis
from sessions.store.address import open_store
from sessions.store.interface import Store

LEASE_S = 3.0
ANSWER_WORDS = 50
"""A second."""
LOOK_EVERY_S = 0.1
LIMIT_S = 60.0
OPENED_AT_ONCE = 50
MOST_SILENT_S = 0.2


class Plan(msgspec.Struct, frozen=True):
    """`kills` of a node that has half of the `clients`; `storm`: sessions that the dying node has, and the other one, too;
    `talkers` answer side by side, `talks` times, while the journal is measured."""

    drops: int
    kills: int
    clients: int
    lease_ends: int
    storm: int
    talkers: int
    talks: int


FULL = Plan(drops=10, kills=6, clients=12, lease_ends=2, storm=500, talkers=16, talks=12)
SHORT = Plan(drops=4, kills=1, clients=4, lease_ends=1, storm=20, talkers=8, talks=2)


class Place(msgspec.Struct, frozen=True):
    nodes: QuickNodes
    store: Store
    http: aiohttp.ClientSession
    another: Callable[[], AbstractAsyncContextManager[QuickNodes]]
    """One more server at the same store."""


class Tally(msgspec.Struct):
    lost: int = 0
    duplicated: int = 0
    foreign: int = 0
    resyncs: int = 0

    def count(self, clients: Iterable[FaithfulClient]) -> None:
        for client in clients:
            self.lost += client.heard.lost
            self.duplicated += client.heard.duplicated
            self.foreign += client.heard.foreign
            self.resyncs += client.resyncs


@asynccontextmanager
async def place(nodes: int = 2, sessions: int = 1000, times: int = ANSWER_WORDS) -> AsyncGenerator[Place]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)

        def server(name: str) -> AbstractAsyncContextManager[QuickNodes]:
            return quick_nodes(folder / name, redis.url, nodes=nodes, sessions=sessions, times=times, lease_s=LEASE_S)

        async with (
            running_redis(folder / "redis") as redis,
            server("one") as one,
            open_store(redis.url, LEASE_S) as store,
            aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as http,
        ):
            yield Place(one, store, http, lambda: server("another"))


async def measure(plan: Plan) -> dict[str, Any]:
    tally = Tally()
    async with place() as here:
        result = await at_two_nodes(here, plan, tally)
    result |= {"lease_end_p95_ms": percentile(await lease_ends(plan, tally), 0.95)}
    async with place(sessions=2 * plan.storm - plan.storm // 10, times=5) as here:
        result |= await storm(here, plan.storm, tally)
    note(f"{tally}")
    return result | msgspec.structs.asdict(tally)


async def at_two_nodes(here: Place, plan: Plan, tally: Tally) -> dict[str, Any]:
    clients = [FaithfulClient(here.http, f"client-{number}") for number in range(plan.clients)]
    await side_by_side(clients, lambda client: opened(client, here.nodes.url))
    same_ms = await same_node(here, clients, plan.drops)
    note(f"same node {sorted(same_ms)}")
    other_ms = await other_node(here, clients, plan.kills)
    note(f"other node {sorted(other_ms)}")
    await side_by_side(clients, FaithfulClient.leave)
    journal = await journal_ms(here, plan, tally)
    tally.count(clients)
    return {
        "same_node_p95_ms": percentile(same_ms, 0.95),
        "same_node_p50_ms": percentile(same_ms, 0.5),
        "drops": len(same_ms),
        "other_node_p95_ms": percentile(other_ms, 0.95),
        "other_node_p50_ms": percentile(other_ms, 0.5),
        "kills": len(other_ms),
        **journal,
    }


# ── one and the same node


async def same_node(here: Place, clients: Sequence[FaithfulClient], times: int) -> list[float]:
    """One client after the other, while all are being answered."""
    taken: list[float] = []

    async def breaks_off(client: FaithfulClient) -> None:
        await client.ask()
        await client.hears(1 + clients.index(client))
        broken_at = time.monotonic()
        await client.drop()
        await client.come_back(here.nodes.url)
        taken.append(since_ms(client, broken_at))
        await client.all_answered()

    for _ in range(times):
        await side_by_side(clients, breaks_off)
    return taken


# ── another node


async def other_node(here: Place, clients: Sequence[FaithfulClient], times: int) -> list[float]:
    """All clients of the node that is killed come back at once."""
    taken: list[float] = []
    for _ in range(times):
        await side_by_side(clients, FaithfulClient.ask)
        await side_by_side(clients, lambda client: client.hears(5))
        victim, its_clients = await busiest(here.store, clients)
        broken_at = time.monotonic()
        await here.nodes.kill(victim)
        await side_by_side(its_clients, lambda client: back(client, here.nodes.url))
        taken += [since_ms(client, broken_at) for client in its_clients]
        await side_by_side(clients, FaithfulClient.all_answered)
        await here.nodes.served.until("ready again")
    return taken


async def busiest(store: Store, clients: Sequence[FaithfulClient]) -> tuple[str, list[FaithfulClient]]:
    at: dict[str, list[FaithfulClient]] = {}
    for client in clients:
        listed = await store.look(client.session_id)
        assert listed is not None
        at.setdefault(listed.node, []).append(client)
    return max(at.items(), key=lambda item: len(item[1]))


async def lease_ends(plan: Plan, tally: Tally) -> list[float]:
    taken: list[float] = []
    for _ in range(plan.lease_ends):
        taken += await lease_end(plan.clients // 2, tally)
    note(f"after the end of the lease {sorted(taken)}")
    return taken


async def lease_end(count: int, tally: Tally) -> list[float]:
    """A server dies that nobody watches."""
    async with place(nodes=1) as here, here.another() as dying:
        clients = [FaithfulClient(here.http, f"client-{number}") for number in range(count)]
        await side_by_side(clients, lambda client: opened(client, dying.url))
        await side_by_side(clients, FaithfulClient.ask)
        await side_by_side(clients, lambda client: client.hears(5))
        dying.served.process.kill()
        await side_by_side(clients, FaithfulClient.gone)
        owners = [await here.store.owner(client.session_id) for client in clients]
        ends_at = [time.monotonic() + (0.0 if owner is None else owner.lease_s) for owner in owners]
        await side_by_side(clients, lambda client: client.come_back(here.nodes.url))
        await side_by_side(clients, FaithfulClient.all_answered)
        tally.count(clients)
        return [since_ms(client, end_at) for client, end_at in zip(clients, ends_at, strict=True)]


# ── all at once


async def storm(here: Place, size: int, tally: Tally) -> dict[str, Any]:
    """A node with so many sessions dies; the other one has as many, and not quite room for all."""
    clients = [FaithfulClient(here.http, f"client-{number}") for number in range(2 * size)]
    for some in range(0, len(clients), OPENED_AT_ONCE):
        await side_by_side(clients[some : some + OPENED_AT_ONCE], lambda client: opened(client, here.nodes.url))
    victim, its_clients = await busiest(here.store, clients)
    note(f"{len(its_clients)} of {len(clients)} sessions are at the node that dies")
    watch = Watch(here)
    watching = asyncio.create_task(watch.run())
    broken_at = time.monotonic()
    await here.nodes.kill(victim)
    coming = [asyncio.create_task(back(client, here.nodes.url)) for client in its_clients]
    known_at = [await known(client) for client in its_clients]
    watching.cancel()
    resumed = [client for client in its_clients if client.first_event_at > broken_at]
    for each in coming:
        each.cancel()
    await asyncio.wait([*coming, watching])
    await side_by_side(resumed, FaithfulClient.ask)
    await side_by_side(resumed, FaithfulClient.all_answered)
    tally.count(resumed)
    return {
        "storm_s": round(max(known_at) - broken_at, 2),
        "storm": len(its_clients),
        "storm_resumed": len(resumed),
        "storm_queued": len(its_clients) - len(resumed),
        "over_admitted": watch.most_beyond,
    }


async def known(client: FaithfulClient) -> float:
    """When it had its session again, or knew that it has to wait."""
    await client.until(lambda: client.known_at > client.broken_at > 0.0, LIMIT_S)
    return client.known_at


class Watch:
    """Somebody who counts meanwhile."""

    def __init__(self, here: Place) -> None:
        self.most_beyond = 0.0
        self._here = here

    async def run(self) -> None:
        while True:
            used = (await self._here.store.census()).resources.values()
            self.most_beyond = max([self.most_beyond, *(each.used - each.capacity for each in used if each.capacity)])
            await asyncio.sleep(LOOK_EVERY_S)


# ── the journal


async def journal_ms(here: Place, plan: Plan, tally: Tally) -> dict[str, Any]:
    talkers = [FaithfulClient(here.http, f"talker-{number}") for number in range(plan.talkers)]
    await side_by_side(talkers, lambda client: opened(client, here.nodes.url))
    before = await journal_waits(here.http, here.nodes.url)
    draw = random.Random(1)

    async def asks(client: FaithfulClient) -> None:
        for _ in range(plan.talks):
            await asyncio.sleep(draw.uniform(0, MOST_SILENT_S))  # people do not talk in step
            await client.ask()
            await client.all_answered()

    await side_by_side(talkers, asks)
    waits = (await journal_waits(here.http, here.nodes.url)) - before
    await side_by_side(talkers, FaithfulClient.leave)
    tally.count(talkers)
    return {"journal_p95_ms": waits.percentile_ms(0.95), "journal_p50_ms": waits.percentile_ms(0.5), "journaled": waits.count}


# ── clients


async def side_by_side(clients: Iterable[FaithfulClient], act: Callable[[FaithfulClient], Awaitable[None]]) -> None:
    async with asyncio.timeout(LIMIT_S):
        await asyncio.gather(*(act(client) for client in clients))


async def opened(client: FaithfulClient, url: str) -> None:
    await client.connect(url)
    await client.introduce()


async def back(client: FaithfulClient, url: str) -> None:
    await client.gone()
    await client.come_back(url)


def since_ms(client: FaithfulClient, began_at: float) -> float:
    return round((client.first_event_at - began_at) * 1000, 1)


async def main() -> None:
    result = await reported(measure(chosen(__doc__, FULL, SHORT)))
    if result["lost"] or result["duplicated"] or result["foreign"] or result["over_admitted"]:
        sys.exit("an event was lost, came twice or to somebody else, or more sessions ran than there is room for")


if __name__ == "__main__":
    asyncio.run(main())
