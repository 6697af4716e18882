"""Nodes in memory: what each has told, and whether it lives."""

from dataclasses import dataclass

from sessions.store.amounts import Amounts
from sessions.store.memory_pool import Pool
from sessions.store.ordered_set import OrderedSet


@dataclass(frozen=True, slots=True)
class Told:
    """An Announcement, counted."""

    node: str
    host: str
    address: str
    ready: bool
    draining: bool
    capacity: Amounts
    reserve: Amounts
    lease_us: int
    return_us: int
    grace_us: int


@dataclass(slots=True)
class NodeKept:
    told: Told
    died_us: int | None = None


class Nodes:
    """A node stands in `ends` as n:<node> until its lease ends; then as l:<node> until its tickets are lent, and as g:<node>
    until they end."""

    def __init__(self, pool: Pool, ends: OrderedSet) -> None:
        self._pool = pool
        self._ends = ends
        self._kept: dict[str, NodeKept] = {}

    def get(self, node: str) -> NodeKept | None:
        return self._kept.get(node)

    def living(self, node: str) -> NodeKept | None:
        kept = self._kept.get(node)
        return None if kept is None or kept.died_us is not None else kept

    def all(self) -> list[NodeKept]:
        return [self._kept[node] for node in sorted(self._kept)]

    def lease_us(self, node: str) -> int | None:
        """When it ends."""
        return self._ends.score(f"n:{node}")

    def tell(self, told: Told, now_us: int) -> None:
        before = self.living(told.node)
        self._pool.tell(
            told.node, told.capacity, told.reserve, [] if before is None else [name for name, _ in before.told.capacity]
        )
        self._kept[told.node] = NodeKept(told)
        self._ends.discard(f"l:{told.node}")
        self._ends.discard(f"g:{told.node}")
        self.renew(told.node, now_us + told.lease_us)

    def renew(self, node: str, until_us: int) -> None:
        self._ends.put(f"n:{node}", until_us)

    def die(self, kept: NodeKept, now_us: int) -> None:
        told = kept.told
        kept.died_us = now_us
        self._pool.forget(told.node, [name for name, _ in told.capacity])
        self._ends.discard(f"n:{told.node}")
        self._ends.put(f"l:{told.node}", now_us + told.return_us)
        self._ends.put(f"g:{told.node}", now_us + told.grace_us)

    def remove(self, node: str) -> None:
        del self._kept[node]
