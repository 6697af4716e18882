"""People at a full house: some come and wait, some leave, those whose turn it is come in; a decision is one call of the store."""

import asyncio
import random
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from functools import partial
from typing import TypeAlias

import msgspec

from sessions.store.interface import AdmissionStore
from sessions.store.records import Admitted, Announcement, Ask, Offered, Refused, Resources

NODES = 5
"""Of equal size, also where there are ten seats in all: as many leave a node as come to it."""
HOSTS = 2
TENANTS = 15
ROOM = 64
"""So many wait while it is measured."""
ASK_AGAIN = 0.2
"""Of the decisions: those who wait renew their place."""
WOULD_NOT_WAIT = 0.1
FILLED_AT_ONCE = 256
LEASE_S = 3600.0
PLACE_S = 600.0
NEWS_WAIT_S = 1.0
PLENTY = 10_000_000
"""Of what never lacks, and has to be counted all the same."""

Decision: TypeAlias = tuple[str, Callable[[], Awaitable[None]]]
"""What it is, and how it is made."""


def _node(number: int) -> str:
    return f"node-{number % NODES}"


def _vector(number: int, sessions: float, state_mb: float, load: float, vad: float) -> Resources:
    node, host = f"node:{_node(number)}:", f"host:host-{number % HOSTS}:"
    return {node + "sessions": sessions, node + "state_mb": state_mb, host + "load": load, host + "vad": vad}


def _ask(number: int, may_wait: bool) -> Ask:
    tenant = f"tenant-{number % TENANTS}"
    quota = f"tenant:{tenant}:sessions"
    return Ask(
        session_id=f"sess_{number:020x}",
        tenant=tenant,
        kind="voice",
        node=_node(number),
        cost={**_vector(number, 1, 8, 10, 1), quota: 1},
        quota={quota: PLENTY},
        may_wait=may_wait,
        place_s=PLACE_S,
    )


class Crowd:
    """At `seats` seats, all of them taken. Many decisions may be under way at once."""

    def __init__(self, store: AdmissionStore, seats: int, seed: int) -> None:
        self._store = store
        self._seats = seats
        self._draw = random.Random(seed)
        self._number = 0
        self._living: list[Ask] = []
        self._waiting: dict[str, Ask] = {}
        self._offered: list[Ask] = []
        self._cursors: list[str] = []

    def next_decision(self) -> Decision:
        """As the house stands now."""
        if self._offered:
            return "take", partial(self._asks, self._offered.pop())
        drawn = self._draw.random()
        if drawn < ASK_AGAIN and self._waiting:
            return "renew", partial(self._asks, self._draw.choice(list(self._waiting.values())))
        if len(self._waiting) < ROOM:
            return "enter", partial(self._asks, self._newcomer())
        if drawn < ASK_AGAIN + WOULD_NOT_WAIT or not self._living:
            return "refuse", partial(self._asks, _ask(self._next_number(), may_wait=False))
        leaver = self._anybody()
        return "release", partial(self._store.release, leaver.session_id, leaver.node)

    async def fill(self) -> None:
        for number in range(NODES):
            seats = (self._seats + NODES - 1 - number) // NODES
            capacity = _vector(number, seats, PLENTY, PLENTY, PLENTY)
            announcement = Announcement(
                node=_node(number),
                host=f"host-{number % HOSTS}",
                address="",
                ready=True,
                draining=False,
                capacity=capacity,
                lease_s=LEASE_S,
            )
            await self._store.announce(announcement)
            self._cursors.append((await self._store.news(_node(number), "", 0.001))[0])
        coming = iter(range(self._seats))
        async with asyncio.TaskGroup() as group:
            for _ in range(FILLED_AT_ONCE):
                group.create_task(self._come(coming))
        await self._come(range(ROOM))
        assert len(self._living) == self._seats, f"expected {self._seats} seats to be taken, got {len(self._living)}"

    async def hear(self, number: int) -> None:
        """Those who wait for this node are called in."""
        node, cursor = _node(number), self._cursors[number]
        while True:
            cursor, news = await self._store.news(node, cursor, NEWS_WAIT_S)
            for each in news:
                if isinstance(each, Offered) and each.session_id in self._waiting:
                    self._offered.append(self._waiting.pop(each.session_id))

    # ── within

    async def _come(self, times: Iterable[int]) -> None:
        for _ in times:
            await self._asks(self._newcomer())

    async def _asks(self, asked: Ask) -> None:
        answer = await self._store.ask(asked)
        if isinstance(answer, Admitted):
            self._living.append(asked)
        if isinstance(answer, Admitted | Refused):
            self._waiting.pop(asked.session_id, None)

    def _newcomer(self) -> Ask:
        asked = _ask(self._next_number(), may_wait=True)
        self._waiting[asked.session_id] = asked
        return asked

    def _next_number(self) -> int:
        self._number += 1
        return self._number

    def _anybody(self) -> Ask:
        chosen = self._draw.randrange(len(self._living))
        self._living[chosen], self._living[-1] = self._living[-1], self._living[chosen]
        return self._living.pop()


@asynccontextmanager
async def full_house(store: AdmissionStore, seats: int, seed: int = 6) -> AsyncGenerator[Crowd]:
    crowd = Crowd(store, seats, seed)
    await crowd.fill()
    listening = [asyncio.create_task(crowd.hear(number)) for number in range(NODES)]
    try:
        yield crowd
    finally:
        for task in listening:
            task.cancel()
        await asyncio.wait(listening)


class Taken(msgspec.Struct):
    """Milliseconds of each decision, by what it was, and how long all of them took."""

    ms: dict[str, list[float]] = {}
    wall_s: float = 0.0

    def add(self, what: str, ms: float) -> None:
        self.ms.setdefault(what, []).append(ms)

    @property
    def all_ms(self) -> list[float]:
        return [ms for each in self.ms.values() for ms in each]
