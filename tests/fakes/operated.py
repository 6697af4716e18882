"""The admin paths over a store in memory whose contents a test writes, with keys for an operator and for tenants."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import aiohttp

from fakes.clock import Clock
from fakes.doors import Door
from fakes.edge import edge_context, serving
from fakes.graph import FakeGraph
from sessions.admission.settings import CalibratedSeats
from sessions.identity.key_ring import Grant
from sessions.identity.principal import Scope
from sessions.identity.tenants import TenantSettings
from sessions.retention.settings import SessionLimits
from sessions.store.memory import MemoryStore
from sessions.store.records import Admitted, Announcement, Ask, SessionRecord, Write

LEASE_S = 10.0
OPERATOR, ACME, OTHER, REST_ONLY = "ops", "acme", "other", "rest"


class Operated:
    def __init__(self, store: MemoryStore, clock: Clock, keys: Mapping[str, str], url: str, http: aiohttp.ClientSession) -> None:
        self.store = store
        self.clock = clock
        self.keys = keys
        self.url = url
        self._http = http

    async def ask(self, path: str, key: str = OPERATOR, method: str = "GET") -> tuple[int, dict[str, Any]]:
        """`path` behind /v1/admin."""
        headers = {"Authorization": f"Bearer {self.keys[key]}"}
        async with self._http.request(method, f"{self.url}/v1/admin{path}", headers=headers) as answer:
            return answer.status, await answer.json()

    async def has_node(self, name: str, seats: int = 4) -> None:
        capacity = {f"node:{name}:sessions": seats}
        await self.store.announce(
            Announcement(
                node=name, host="h", address="10.0.0.1:8080", ready=True, draining=False, capacity=capacity, lease_s=LEASE_S
            )
        )

    async def has_session(self, session_id: str, tenant: str = ACME, node: str = "a", **usage: float) -> None:
        ask = Ask(session_id=session_id, tenant=tenant, kind="voice", node=node, cost={f"node:{node}:sessions": 1})
        assert isinstance(await self.store.ask(ask), Admitted)
        record = SessionRecord(
            session_id=session_id, tenant=tenant, kind="voice", model="m", life_s=3600, grace_s=60, principal="k1"
        )
        fence = await self.store.open(record, node, LEASE_S, b"token")
        await self.store.write(session_id, fence, Write(number=1, usage=usage))


@asynccontextmanager
async def operated(limits: SessionLimits = SessionLimits()) -> AsyncGenerator[Operated]:  # noqa: B008 (a frozen value)
    clock, door = Clock(), Door()
    store = MemoryStore(clock.now_us)
    keys = {
        OPERATOR: (await door.ring.create(Grant(tenant="house", scopes=frozenset((Scope.ADMIN,))))).text,
        ACME: (await door.ring.create(Grant(tenant=ACME, scopes=frozenset((Scope.SESSIONS,))))).text,
        OTHER: (await door.ring.create(Grant(tenant=OTHER, scopes=frozenset((Scope.SESSIONS,))))).text,
        REST_ONLY: (await door.ring.create(Grant(tenant=ACME, scopes=frozenset((Scope.REST,))))).text,
    }
    context = edge_context(
        FakeGraph(),
        door=door,
        store=store,
        limits=limits,
        tenants={ACME: TenantSettings(weight=2, sessions=3), "idle": TenantSettings()},
        calibrated={"voice": CalibratedSeats(seats=6, measured={"p95_ms": 900}, machine="here")},
    )
    async with serving(context) as url, aiohttp.ClientSession() as http:
        yield Operated(store, clock, keys, url, http)
