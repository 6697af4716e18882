"""Nodes and their admission at one store in memory, all by one clock of the test's."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager

from fakes.clock import Clock
from fakes.faulty_store import FaultyStore
from sessions.admission.admission import Admission, Applicant
from sessions.admission.node import Leases, Node, NodeIdentity
from sessions.admission.seats import VOICE, Seats
from sessions.admission.settings import AdmissionSettings, CalibratedSeats
from sessions.identity.principal import LOCAL, Principal
from sessions.identity.tenants import Tenants, TenantSettings
from sessions.store.memory import MemoryStore

HOST = "host"
LEASE_S = 9
THIRD_S = 3


def principal(tenant: str) -> Principal:
    return Principal(tenant=tenant, key_id=tenant, scopes=LOCAL.scopes)


def applicant(
    session_id: str, tenant: str = "local", *, wait_s: float | None = None, visits: bool = False, life_s: float = 3600.0
) -> Applicant:
    return Applicant(session_id=session_id, principal=principal(tenant), kind=VOICE, wait_s=wait_s, visits=visits, life_s=life_s)


class OneNode:
    """A node with a line of its own to the store."""

    def __init__(self, name: str, cluster: "Cluster", seats: Seats, identity: NodeIdentity) -> None:
        self.line = FaultyStore(cluster.store)
        leases, clock = Leases(lease_s=LEASE_S), cluster.clock
        self.node = Node(self.line, identity, seats.capacity, seats.reserve, leases=leases, clock=clock, sleep=clock.sleep)
        self.admission = Admission(self.node, cluster.settings, cluster.tenants, seats, clock=cluster.clock)
        self.name = name


class Cluster:
    """All its nodes on one host, whose load holds `host_seats` conversations; each node takes `node_seats`."""

    def __init__(
        self,
        host_seats: int,
        node_seats: int,
        settings: AdmissionSettings,
        tenants: Mapping[str, TenantSettings],
        settle_s: float,
    ) -> None:
        self.clock = Clock()
        self.store = MemoryStore(self.clock.now_us, settle_s)
        self.settings = settings
        self.tenants = Tenants(tenants)
        self.nodes: list[OneNode] = []
        self._host_seats = host_seats
        self._node_seats = node_seats

    def add(self, name: str) -> OneNode:
        identity = NodeIdentity(node=name, host=HOST)
        calibrated = {VOICE: CalibratedSeats(seats=self._host_seats)}
        seats = Seats(identity, self.settings, self._node_seats, calibrated, lambda: {"vad": 1_000}, {VOICE: 1})
        one = OneNode(name, self, seats, identity)
        self.nodes.append(one)
        return one

    async def active(self) -> int:
        return (await self.store.census()).active

    async def waiting(self) -> int:
        return (await self.store.census()).waiting


@asynccontextmanager
async def cluster(
    nodes: int = 1,
    *,
    host_seats: int = 2,
    node_seats: int = 100,
    settings: AdmissionSettings = AdmissionSettings(),  # noqa: B008 (a frozen value)
    tenants: Mapping[str, TenantSettings] | None = None,
    settle_s: float = 0.0,
) -> AsyncGenerator[Cluster]:
    """Afterwards nothing is left in the store of those who left in peace."""
    made = Cluster(host_seats, node_seats, settings, tenants or {}, settle_s)
    async with AsyncExitStack() as stack:
        for number in range(nodes):
            one = made.add(f"node{number}")
            await stack.enter_async_context(one.node.running())
            one.node.set(ready=True)
            await made.clock.advance(0)
        yield made
    assert await made.active() == 0
    assert await made.waiting() == 0
