"""Nodes that share a real Redis: nobody is let in beyond the seats, and nothing is left, whoever is cancelled."""

import asyncio
import random
from contextlib import AsyncExitStack, suppress
from pathlib import Path

from fakes.faulty_store import Fault, FaultyStore
from fakes.nodes import applicant
from fakes.redis_server import running_redis
from sessions.admission.admission import Admission, NotAdmitted
from sessions.admission.node import Leases, Node, NodeIdentity
from sessions.admission.seats import VOICE, Seats
from sessions.admission.settings import AdmissionSettings, CalibratedSeats
from sessions.identity.tenants import Tenants
from sessions.store.address import open_store
from sessions.store.interface import Store, StoreDown

SEATS, NODES, PEOPLE = 5, 8, 120
LEASES = Leases(lease_s=1.0, return_s=1.0, grace_s=1.0)


def gate(number: int, store: FaultyStore) -> tuple[Node, Admission]:
    identity, settings = NodeIdentity(node=f"node{number}", host="host"), AdmissionSettings(longest_queue=PEOPLE, place_s=1.0)
    seats = Seats(identity, settings, PEOPLE, {VOICE: CalibratedSeats(seats=SEATS)}, lambda: {"vad": PEOPLE}, {})
    node = Node(store, identity, seats.capacity, leases=LEASES)
    node.set(ready=True)
    return node, Admission(node, settings, Tenants({}), seats)


async def test_eight_nodes_and_many_who_come_wait_and_are_cancelled(tmp_path: Path) -> None:
    draw = random.Random(6)
    async with running_redis(tmp_path) as redis, AsyncExitStack() as stack:
        lines, gates = list[FaultyStore](), list[Admission]()
        stores = [await stack.enter_async_context(open_store(redis.url, 0.0)) for _ in range(NODES)]
        for number, store in enumerate(stores):
            lines.append(FaultyStore(store))
            node, admission = gate(number, lines[-1])
            await stack.enter_async_context(node.running())
            gates.append(admission)
        talking = most = 0

        async def person(number: int) -> None:
            nonlocal talking, most
            with suppress(NotAdmitted, StoreDown):
                async with draw.choice(gates).seat(applicant(f"p{number}")):
                    talking += 1
                    most = max(most, talking)
                    try:
                        await asyncio.sleep(draw.random() * 0.02)
                    finally:
                        talking -= 1

        tasks = [asyncio.create_task(person(number)) for number in range(PEOPLE)]
        while any(not task.done() for task in tasks):
            draw.choice(tasks).cancel()
            line = draw.choice(lines)
            line.next[draw.choice(["ask", "release", "renew"])].append(draw.choice([Fault.LOST_ANSWER, Fault.LOST_QUESTION]))
            await asyncio.sleep(0.02)
        await asyncio.gather(*tasks, return_exceptions=True)
        assert most == SEATS
        for line in lines:
            line.next.clear()
        await emptied(stores[0])


async def emptied(store: Store) -> None:
    """Words that were lost are made good by the next renewals, places of those who have left end by themselves."""
    async with asyncio.timeout(20):
        while (census := await store.census()).active or census.waiting:  # noqa: ASYNC110 (a store rings no bell)
            await asyncio.sleep(0.05)
