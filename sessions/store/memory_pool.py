"""Resources in memory: what there is, who says so, and what is taken."""

from collections.abc import Iterable, Mapping

from sessions.store.amounts import NO_LIMIT, Amounts
from sessions.store.records import Priority


class Pool:
    def __init__(self) -> None:
        self.used: dict[str, int] = {}
        self.capacity: dict[str, int] = {}
        self._reserve: dict[str, int] = {}
        self._tellers: dict[str, set[str]] = {}

    def tell(self, node: str, capacity: Amounts, reserve: Amounts, before: Iterable[str]) -> None:
        """`before`: the resources that it told last time. Of a host's nodes the last one that says something is right."""
        named = dict(capacity)
        self.forget(node, [name for name in before if name not in named])
        reserved = dict(reserve)
        for name, parts in capacity:
            self._tellers.setdefault(name, set()).add(node)
            self.capacity[name] = parts
            self._reserve[name] = reserved.get(name, 0)

    def forget(self, node: str, names: Iterable[str]) -> None:
        """It brings these no longer: nobody does, if it was the last."""
        for name in names:
            tellers = self._tellers.get(name, set())
            tellers.discard(node)
            if not tellers:
                for kept in (self._tellers, self.capacity, self._reserve):
                    kept.pop(name, None)

    def take(self, cost: Amounts, sign: int) -> None:
        """`sign` -1 gives back."""
        for name, parts in cost:
            left = self.used.get(name, 0) + sign * parts
            if left:
                self.used[name] = left
            else:
                del self.used[name]

    def limit(self, name: str, quota: Mapping[str, int], priority: Priority) -> int:
        """How much of it those of this priority may hold together."""
        if name.startswith("tenant:"):
            return quota.get(name, NO_LIMIT)
        return self.capacity.get(name, 0) - (0 if priority is Priority.RESUME else self._reserve.get(name, 0))

    def never(self, name: str, parts: int, priority: Priority) -> bool:
        """It is more than there is at all. Of what there is nothing just now there may be some again."""
        return self.capacity.get(name, 0) > 0 and parts > self.limit(name, {}, priority)

    def free(self, name: str, quota: Mapping[str, int], priority: Priority) -> int:
        """Negative, where more is taken than there is now."""
        return self.limit(name, quota, priority) - self.used.get(name, 0)
