"""Which detached sessions stay in memory: within a budget, the one detached longest leaves first."""

from collections import OrderedDict


class Warm:
    """`budget_bytes` of sessions that nobody is connected to."""

    def __init__(self, budget_bytes: int) -> None:
        self._budget_bytes = budget_bytes
        self._sizes: OrderedDict[str, int] = OrderedDict()

    def keep(self, session_id: str, size_bytes: int) -> tuple[str, ...]:
        """It is detached from now on. Returns those that have to leave."""
        self._sizes[session_id] = size_bytes
        self._sizes.move_to_end(session_id)
        leaving: list[str] = []
        while sum(self._sizes.values()) > self._budget_bytes and self._sizes:
            leaving.append(self._sizes.popitem(last=False)[0])
        return tuple(leaving)

    def forget(self, session_id: str) -> None:
        self._sizes.pop(session_id, None)
