"""Tickets in memory, and the orders in which they end, are lent, and stand with their nodes."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum

from sessions.store.amounts import Amounts
from sessions.store.memory_pool import Pool
from sessions.store.ordered_set import OrderedSet


class Standing(IntEnum):
    """Of a ticket with its node; the node counts the first two as its own."""

    FULL = 0
    LENT = 1
    OFFERED = 2
    LEFT = 3
    """Its node has died, and does not know it any more: kept for its session."""


@dataclass(slots=True)
class Held:
    session_id: str
    tenant: str
    kind: str
    node: str
    cost: Amounts
    number: int
    ends_us: int
    """Of its life."""
    ran: bool = False
    offered_us: int | None = None
    """Until when it may be taken."""
    kept_us: int | None = None
    """Until when, without a transport."""
    lend_us: int | None = None
    """From when."""
    lent: bool = False
    left: bool = False

    @property
    def owner(self) -> str:
        return f"{self.session_id}:{self.node}"

    @property
    def standing(self) -> Standing:
        if self.offered_us is not None:
            return Standing.OFFERED
        if self.left:
            return Standing.LEFT
        return Standing.LENT if self.lent else Standing.FULL

    @property
    def over_us(self) -> int:
        if self.offered_us is not None:
            return self.offered_us
        return self.ends_us if self.kept_us is None else min(self.ends_us, self.kept_us)

    @property
    def due_us(self) -> int:
        """When something happens to it by itself."""
        return self.over_us if self.lent or self.lend_us is None else min(self.over_us, self.lend_us)

    def fill(self) -> None:
        """It is a full one."""
        self.ran = True
        self.offered_us = self.kept_us = self.lend_us = None
        self.lent = self.left = False


class Tickets:
    """`ends` is the one order of all that ends by itself; a ticket stands in it as t:<session>."""

    def __init__(self, pool: Pool, ends: OrderedSet) -> None:
        self.of_tenant: dict[str, int] = {}
        self.lent = OrderedSet()
        self._pool = pool
        self._ends = ends
        self._held: dict[str, Held] = {}
        self._of_node: dict[str, OrderedSet] = {}
        self._lent_of: dict[str, OrderedSet] = {}

    def __len__(self) -> int:
        return len(self._held)

    def get(self, session_id: str) -> Held | None:
        return self._held.get(session_id)

    def add(self, held: Held) -> None:
        self._held[held.session_id] = held
        self._pool.take(held.cost, 1)
        self.of_tenant[held.tenant] = self.of_tenant.get(held.tenant, 0) + 1
        self.note(held)

    def remove(self, held: Held) -> None:
        del self._held[held.session_id]
        self._pool.take(held.cost, -1)
        self.of_tenant[held.tenant] -= 1
        if not self.of_tenant[held.tenant]:
            del self.of_tenant[held.tenant]
        self._ends.discard(f"t:{held.session_id}")
        self._of_node[held.node].discard(held.session_id)
        if not self._of_node[held.node]:
            del self._of_node[held.node]
        self._unlend(held)

    def note(self, held: Held) -> None:
        """It stands otherwise than before."""
        self._ends.put(f"t:{held.session_id}", held.due_us)
        self._of_node.setdefault(held.node, OrderedSet()).put(held.session_id, held.standing)
        if not held.lent:
            self._unlend(held)

    def lend(self, held: Held, now_us: int) -> None:
        held.lent = True
        self.lent.put(held.session_id, now_us)
        for name, _ in held.cost:
            self._lent_of.setdefault(name, OrderedSet()).put(held.session_id, now_us)
        self.note(held)

    def of_node(self, node: str, standing: Standing, count: int | None = None) -> list[Held]:
        """The first of those that stand so, or before it."""
        ordered = self._of_node.get(node, OrderedSet())
        return [self._held[session_id] for session_id in ordered.up_to(standing, len(ordered) if count is None else count)]

    def counted(self, node: str) -> int:
        """As the node counts them."""
        return self._of_node[node].count(Standing.LENT) if node in self._of_node else 0

    def longest_lent(self, name: str, count: int) -> Iterator[Held]:
        return (self._held[session_id] for session_id in self._lent_of.get(name, OrderedSet()).first(count))

    def _unlend(self, held: Held) -> None:
        if self.lent.discard(held.session_id):
            for name, _ in held.cost:
                self._lent_of[name].discard(held.session_id)
                if not self._lent_of[name]:
                    del self._lent_of[name]
