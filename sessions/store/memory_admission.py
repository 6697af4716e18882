"""Admission of one process, in memory."""

from collections.abc import Callable, Mapping, Sequence

from sessions.store.amounts import microseconds, used_up
from sessions.store.counting import claimed_by, resources_of, ticket_of, told_by, wish_of
from sessions.store.memory_bills import Bills
from sessions.store.memory_gate import Gate
from sessions.store.memory_news import NewsBoards
from sessions.store.memory_seating import Seating
from sessions.store.memory_tickets import Held
from sessions.store.records import (
    Admitted,
    Announcement,
    Ask,
    Census,
    Decision,
    News,
    NodeSeen,
    Order,
    Renewed,
    Ticket,
)
from sessions.store.session_limits import checked_id


class MemoryAdmission:
    """An AdmissionStore. `now_us` is the store's clock, `incarnation` the time at which it began; until `settle_s` later only
    those who come back are let in."""

    def __init__(self, now_us: Callable[[], int], incarnation: int, settle_s: float) -> None:
        self._clock_us = now_us
        self._life = incarnation
        self._boards = NewsBoards()
        self._seating = Seating(incarnation + microseconds(settle_s, "settle_s"), self._boards.tell)
        self._gate = Gate(now_us, self._seating)
        self._bills = Bills()

    # ── nodes

    async def announce(self, node: Announcement, tickets: Sequence[Ticket] = ()) -> tuple[int, tuple[str, ...]]:
        now_us = self._clock_us()
        return self._life, self._gate.announce(told_by(node), [claimed_by(node.node, ticket, now_us) for ticket in tickets])

    async def renew(self, node: str, lease_s: float) -> Renewed:
        known, tickets = self._gate.renew(node, microseconds(lease_s, "lease_s"))
        return Renewed(self._life, known, tickets)

    async def node_gone(self, node: str) -> tuple[str, ...]:
        return self._gate.node_gone(node)

    async def nodes(self) -> tuple[NodeSeen, ...]:
        self._gate.look()
        now_us, seating = self._clock_us(), self._seating
        return tuple(
            NodeSeen(
                node=kept.told.node,
                host=kept.told.host,
                address=kept.told.address,
                ready=kept.told.ready,
                draining=kept.told.draining,
                lease_s=max((seating.nodes.lease_us(kept.told.node) or 0) - now_us, 0) / 1e6,
                tickets=seating.tickets.counted(kept.told.node),
            )
            for kept in seating.nodes.all()
        )

    async def news(self, node: str, after: str, wait_s: float) -> tuple[str, tuple[News, ...]]:
        return await self._boards.read(node, after, wait_s)

    async def settling_s(self) -> float:
        return max(self._seating.settled_us - self._clock_us(), 0) / 1e6

    async def order(self, node: str, order: Order) -> None:
        self._boards.tell(node, order)

    # ── tickets

    async def ask(self, ask: Ask) -> Decision:
        wish = wish_of(ask)
        answer = self._gate.ask(wish)
        if isinstance(answer, Held):
            return Admitted(ticket_of(wish, answer.number, answer.ends_us - self._clock_us()))
        return answer

    async def release(self, session_id: str, node: str) -> None:
        self._gate.release(checked_id(session_id), node)

    async def keep(self, session_id: str, node: str, keep_s: float, lend_after_s: float) -> bool:
        keep_us, lend_us = microseconds(keep_s, "keep_s"), microseconds(lend_after_s, "lend_after_s")
        return self._gate.keep(checked_id(session_id), node, keep_us, lend_us)

    async def orphans(self, limit: int) -> tuple[str, ...]:
        return self._gate.orphans(limit)

    async def census(self) -> Census:
        self._gate.look()
        seating, pool = self._seating, self._seating.pool
        error_us = seating.wait_error_us
        return Census(
            active=len(seating.tickets),
            lent=len(seating.tickets.lent),
            waiting=len(seating.waiting),
            resources=resources_of(pool.used, pool.capacity),
            tenants=dict(seating.tickets.of_tenant),
            wait_error_s=None if error_us is None else error_us / 1e6,
        )

    # ── bills

    async def bill(self, tenant: str, session_id: str, usage: Mapping[str, float], life_s: float = 0.0) -> None:
        self._bills.add(tenant, checked_id(session_id), used_up(usage), life_s, self._clock_us())

    async def bills(self) -> Mapping[str, Mapping[str, float]]:
        return self._bills.all()
