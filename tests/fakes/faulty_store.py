"""A store behind a line that breaks when a test says so: admission's part of it, with scripted faults."""

import asyncio
from collections import Counter, defaultdict, deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from enum import Enum, auto
from typing import TypeVar

from sessions.store.interface import AdmissionStore, StoreDown
from sessions.store.records import Announcement, Ask, Census, Decision, News, NodeSeen, Order, Renewed, Ticket

T = TypeVar("T")
RETRY_S = 0.01


class Fault(Enum):
    LOST_QUESTION = auto()
    """It fails, and has not been carried out."""
    LOST_ANSWER = auto()
    """It fails, and has been carried out."""
    HELD_BEFORE = auto()
    """It waits until `let_on` before it is carried out; `holding` is set meanwhile."""
    HELD_AFTER = auto()
    """It is carried out, and its answer waits."""


class FaultyStore:
    """Everything passes, unless `down`, or a fault is scripted: `store.next["ask"].append(Fault.LOST_ANSWER)`."""

    def __init__(self, store: AdmissionStore) -> None:
        self.down = False
        self.next: defaultdict[str, deque[Fault]] = defaultdict(deque)
        self.calls: Counter[str] = Counter()
        self.holding = asyncio.Event()
        self.let_on = asyncio.Event()
        self._store = store

    def connect(self, store: AdmissionStore) -> None:
        """To another one, from now on."""
        self._store = store

    async def announce(self, node: Announcement, tickets: Sequence[Ticket] = ()) -> tuple[int, tuple[str, ...]]:
        return await self._pass("announce", lambda: self._store.announce(node, tickets))

    async def renew(self, node: str, lease_s: float) -> Renewed:
        return await self._pass("renew", lambda: self._store.renew(node, lease_s))

    async def ask(self, ask: Ask) -> Decision:
        return await self._pass("ask", lambda: self._store.ask(ask))

    async def release(self, session_id: str, node: str) -> None:
        return await self._pass("release", lambda: self._store.release(session_id, node))

    async def keep(self, session_id: str, node: str, keep_s: float, lend_after_s: float) -> bool:
        return await self._pass("keep", lambda: self._store.keep(session_id, node, keep_s, lend_after_s))

    async def node_gone(self, node: str) -> tuple[str, ...]:
        return await self._pass("node_gone", lambda: self._store.node_gone(node))

    async def news(self, node: str, after: str, wait_s: float) -> tuple[str, tuple[News, ...]]:
        return await self._pass("news", lambda: self._store.news(node, after, wait_s))

    async def order(self, node: str, order: Order) -> None:
        return await self._pass("order", lambda: self._store.order(node, order))

    async def settling_s(self) -> float:
        return await self._pass("settling_s", self._store.settling_s)

    async def nodes(self) -> tuple[NodeSeen, ...]:
        return await self._pass("nodes", self._store.nodes)

    async def census(self) -> Census:
        return await self._pass("census", self._store.census)

    async def bill(self, tenant: str, session_id: str, usage: Mapping[str, float], life_s: float = 0.0) -> None:
        return await self._pass("bill", lambda: self._store.bill(tenant, session_id, usage, life_s))

    async def bills(self) -> Mapping[str, Mapping[str, float]]:
        return await self._pass("bills", self._store.bills)

    async def orphans(self, limit: int) -> tuple[str, ...]:
        return await self._pass("orphans", lambda: self._store.orphans(limit))

    async def _pass(self, name: str, call: Callable[[], Awaitable[T]]) -> T:
        self.calls[name] += 1
        fault = self.next[name].popleft() if self.next[name] else None
        if self.down or fault is Fault.LOST_QUESTION:
            raise StoreDown("the line is cut", RETRY_S)
        if fault is Fault.HELD_BEFORE:
            await self._hold()
        answer = await call()
        if fault is Fault.LOST_ANSWER:
            raise StoreDown("the line broke", RETRY_S)
        if fault is Fault.HELD_AFTER:
            await self._hold()
        return answer

    async def _hold(self) -> None:
        self.holding.set()
        await self.let_on.wait()
