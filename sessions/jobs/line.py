"""Whose turn it is: tenants take turns, and each tenant's jobs come in their order."""

import asyncio
from collections import Counter, deque
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import msgspec


class _Waiting(msgspec.Struct, frozen=True):
    tenant: str
    turn: asyncio.Future[None]


class Line:
    """At most `at_once` turns at a time. Whoever bounds the jobs bounds the line."""

    def __init__(self, at_once: int) -> None:
        self._free = at_once
        self._waiting: deque[_Waiting] = deque()
        self._turns: Counter[str] = Counter()

    @asynccontextmanager
    async def turn(self, tenant: str) -> AsyncGenerator[None]:
        """Waits for it; it lasts as long as the block."""
        waiting = _Waiting(tenant, asyncio.get_running_loop().create_future())
        self._waiting.append(waiting)
        self._call()
        try:
            await waiting.turn
            yield
        finally:
            if waiting in self._waiting:
                self._waiting.remove(waiting)
            else:
                self._free += 1
                self._turns[tenant] -= 1
                self._call()

    def _call(self) -> None:
        while self._free and self._waiting:
            waiting = min(self._waiting, key=lambda each: self._turns[each.tenant])  # the first of equals
            self._waiting.remove(waiting)
            self._free -= 1
            self._turns[waiting.tenant] += 1
            if not waiting.turn.done():
                waiting.turn.set_result(None)
