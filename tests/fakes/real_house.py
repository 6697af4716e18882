"""Nodes at one real store, each with a connection of its own, and an observer who counts who talks, whatever the store says.

async with house(url, nodes=3, seats=4) as here:
    here.comes("anna", here.nodes[0]); await here.talks("anna")
"""

import asyncio
import itertools
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import AsyncExitStack, asynccontextmanager

from fakes.faulty_store import FaultyStore
from sessions.admission.admission import Admission, Applicant, NotAdmitted, Seat
from sessions.admission.node import Leases, Node, NodeIdentity
from sessions.admission.seats import VOICE, Seats
from sessions.admission.settings import AdmissionSettings, CalibratedSeats
from sessions.identity.principal import LOCAL
from sessions.identity.tenants import Tenants
from sessions.store.address import open_store
from sessions.store.interface import Store, StoreDown

HOST = "host"


class Person:
    """One session: it comes, perhaps waits, talks until it leaves or loses its seat."""

    def __init__(self, session_id: str, patient: bool) -> None:
        self.session_id = session_id
        self.is_patient = patient
        self.is_seated = False
        self.is_gone = False
        self.leaves = asyncio.Event()
        self.broken_off = asyncio.Event()
        """Or there again."""
        self.refused: NotAdmitted | StoreDown | None = None

    async def breaks_off_before_it_is_over(self, seat: Seat) -> bool:
        waits = [asyncio.create_task(event.wait()) for event in (self.broken_off, seat.lost, self.leaves)]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
        return self.broken_off.is_set() and not (seat.lost.is_set() or self.leaves.is_set())


class RealNode:
    def __init__(self, name: str, house: "House", store: Store) -> None:
        self.name = name
        self.store = store
        self.line = FaultyStore(store)
        identity = NodeIdentity(node=name, host=HOST)
        seats = Seats(identity, house.settings, 1_000, {VOICE: CalibratedSeats(seats=house.seats)}, lambda: {"vad": 1_000}, {})
        self.node = Node(self.line, identity, seats.capacity, seats.reserve, leases=house.leases)
        self.node.on_renewal(lambda _: house.happened.set())  # who was mute may talk again
        self.admission = Admission(self.node, house.settings, Tenants(), seats)
        self.seats: dict[str, Seat] = {}
        """Of those who are connected."""
        self._exits = AsyncExitStack()
        self._visits: dict[str, asyncio.Task[None]] = {}

    async def start(self) -> None:
        await self._exits.enter_async_context(self.node.running())
        self.node.set(ready=True)

    async def crash(self) -> None:
        """As kill -9 does: it says nothing more to anybody."""
        self.line.down = True
        await self.stop()

    async def stop(self) -> None:
        for visit in self._visits.values():
            visit.cancel()
        if self._visits:
            await asyncio.wait(self._visits.values())
        await self._exits.aclose()

    def visited(self, person: Person, house: "House", wait_s: float) -> None:
        visit = asyncio.create_task(self._visit(person, house, wait_s))
        self._visits[person.session_id] = visit
        visit.add_done_callback(lambda _: self._visits.pop(person.session_id, None))

    async def _visit(self, person: Person, house: "House", wait_s: float) -> None:
        applicant = Applicant(session_id=person.session_id, principal=LOCAL, kind=VOICE, wait_s=wait_s)
        try:
            while True:
                down = await self._stay(applicant, person, house)
                if down is None or not person.is_patient:
                    return
                await asyncio.sleep(down.retry_after_s)
        finally:
            person.is_gone = True
            house.happened.set()

    async def _stay(self, applicant: Applicant, person: Person, house: "House") -> StoreDown | None:
        try:
            async with self.admission.seat(applicant) as seat:
                person.is_seated = True
                try:
                    await self._talk(person, seat, house)
                finally:
                    self.seats.pop(person.session_id, None)
        except NotAdmitted as refused:
            person.refused = refused
        except StoreDown as down:
            person.refused = down
            return down
        return None

    async def _talk(self, person: Person, seat: Seat, house: "House") -> None:
        """Until it leaves or has lost its seat. Its connection breaks off when it likes, and is there again when it likes."""
        while True:
            self.seats[person.session_id] = seat
            house.observe()
            if not await person.breaks_off_before_it_is_over(seat):
                return
            del self.seats[person.session_id]
            if not await seat.keep(house.leases.grace_s, 0.0):
                return
            person.broken_off.clear()
            await person.breaks_off_before_it_is_over(seat)
            person.broken_off.clear()
            if not await seat.take_up():
                return


class House:
    def __init__(self, url: str, seats: int, leases: Leases, settle_s: float, settings: AdmissionSettings) -> None:
        self.seats = seats
        self.leases = leases
        self.settings = settings
        self.settle_s = settle_s
        self.nodes: list[RealNode] = []
        self.most_talking = 0
        self.faults: list[str] = []
        self.happened = asyncio.Event()
        self._url = url
        self._numbers = itertools.count()
        self._exits = AsyncExitStack()

    async def add_node(self) -> RealNode:
        store = await self._exits.enter_async_context(open_store(self._url, self.settle_s))
        node = RealNode(f"node{next(self._numbers)}", self, store)
        await node.start()
        self.nodes.append(node)
        return node

    async def crash(self, node: RealNode) -> None:
        self.nodes.remove(node)
        await node.crash()

    def comes(self, session_id: str, node: RealNode, *, wait_s: float = 60.0, patient: bool = False) -> Person:
        """`patient`: who is told that the store is down comes again."""
        person = Person(session_id, patient)
        node.visited(person, self, wait_s)
        return person

    def talking(self) -> list[str]:
        """On nodes whose lease holds: a node without one is mute."""
        nodes = [node for node in self.nodes if node.node.lease_left_s > 0]
        return sorted(session for node in nodes for session, seat in node.seats.items() if not seat.lost.is_set())

    def observe(self) -> None:
        """Nobody talks beyond what there is, and nobody twice."""
        talking = self.talking()
        self.most_talking = max(self.most_talking, len(talking))
        if len(talking) > self.seats or len(talking) > len(set(talking)):
            self.faults.append(f"{len(talking)} talk at {self.seats} seats: {talking}")
        self.happened.set()

    async def until(self, holds: Callable[[], bool], longest_s: float = 10.0) -> None:
        """Asked again whenever somebody has got a seat, or has gone, or a lease has been renewed."""
        async with asyncio.timeout(longest_s):
            while not holds():
                self.happened.clear()
                await self.happened.wait()

    async def waits(self, count: int) -> None:
        """Until so many do, in all."""
        async with asyncio.timeout(10):
            while (await self.nodes[0].store.census()).waiting != count:
                pass  # nobody tells

    async def mute(self) -> None:
        """When no node has a lease any more: none can be renewed now."""
        await asyncio.sleep(max(node.node.lease_left_s for node in self.nodes))
        assert self.talking() == []

    async def close(self) -> None:
        async with asyncio.TaskGroup() as group:
            for node in self.nodes:
                group.create_task(node.stop())
        await self._exits.aclose()


def seated(people: Iterable[Person]) -> int:
    """How many have had a seat."""
    return sum(person.is_seated for person in people)


@asynccontextmanager
async def house(
    url: str,
    *,
    nodes: int,
    seats: int,
    leases: Leases = Leases(lease_s=3.0, return_s=1.0, grace_s=2.0),  # noqa: B008 (a frozen value)
    settle_s: float = 3.0,
    settings: AdmissionSettings = AdmissionSettings(place_s=1.0),  # noqa: B008 (a frozen value)
) -> AsyncGenerator[House]:
    here = House(url, seats, leases, settle_s, settings)
    try:
        for _ in range(nodes):
            await here.add_node()
        yield here
    finally:
        await here.close()
