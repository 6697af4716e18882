"""Admission in memory and in a real Redis, each with a clock that the test moves."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager

from fakes.store_time import CLOCK_LUA, StoreTime
from sessions.store.address import connected
from sessions.store.connection import StoreConnection
from sessions.store.interface import AdmissionStore
from sessions.store.keys import ADMISSION
from sessions.store.library import library
from sessions.store.memory_admission import MemoryAdmission
from sessions.store.records import Admitted, Announcement, Ask, Priority, Resources, Ticket, Waiting
from sessions.store.redis_admission import RedisAdmission
from sessions.store.url import parse

PATIENCE_S = 30.0
"""A busy machine is no failure."""


class TimedAdmission:
    def __init__(self, store: AdmissionStore, time: StoreTime, connection: StoreConnection | None) -> None:
        self.store = store
        self._time = time
        self._connection = connection

    async def pass_time(self, seconds: float) -> None:
        self._time.step(seconds)
        if self._connection is not None:
            await self._connection.call("test_clock", (ADMISSION,), (self._time.us,))


def in_memory(settle_s: float = 0.0) -> TimedAdmission:
    time = StoreTime()
    return TimedAdmission(MemoryAdmission(time.now_us, time.us, settle_s), time, None)


@asynccontextmanager
async def in_redis(url: str, settle_s: float = 0.0) -> AsyncGenerator[TimedAdmission]:
    """A new store: call it once before time passes."""
    async with connected(parse(url), library(CLOCK_LUA), PATIENCE_S) as connection:
        timed = TimedAdmission(RedisAdmission(connection, settle_s), StoreTime(), connection)
        await timed.pass_time(0)
        yield timed


# ── what tests tell it


def announced(
    node: str,
    seats: float,
    *,
    load: float = 1000,
    reserve: Resources = {},  # noqa: B006 (nobody changes it)
    ready: bool = True,
    draining: bool = False,
) -> Announcement:
    """Of the one host h. Its lease is 10 s; of a dead one's tickets, 10 s are for their sessions alone, 60 s in all."""
    capacity = {f"node:{node}:seats": seats, "host:h:load": load}
    return Announcement(node=node, host="h", address="", ready=ready, draining=draining, capacity=capacity, reserve=reserve)


def wish(
    session_id: str,
    node: str = "a",
    *,
    tenant: str = "t",
    seats: float = 1,
    load: float = 1,
    quota: float | None = None,
    priority: Priority = Priority.INTERACTIVE,
    weight: float = 1,
    life_s: float = 3600,
    may_wait: bool = True,
    longest_queue: int = 100,
    longest_wait_s: float = 300,
) -> Ask:
    """A place in the waiting room holds 5 s."""
    of_tenant = f"tenant:{tenant}:sessions"
    return Ask(
        session_id=session_id,
        tenant=tenant,
        kind="voice",
        node=node,
        cost={f"node:{node}:seats": seats, "host:h:load": load, of_tenant: 1},
        quota={} if quota is None else {of_tenant: quota},
        priority=priority,
        weight=weight,
        life_s=life_s,
        may_wait=may_wait,
        longest_queue=longest_queue,
        longest_wait_s=longest_wait_s,
    )


async def seated(store: AdmissionStore, *wishes: Ask) -> list[Ticket]:
    decisions = [await store.ask(each) for each in wishes]
    tickets = [decision.ticket for decision in decisions if isinstance(decision, Admitted)]
    assert len(tickets) == len(wishes), decisions
    return tickets


async def positions(store: AdmissionStore, wishes: Sequence[Ask]) -> list[int]:
    decisions = [await store.ask(each) for each in wishes]
    told = [decision.position for decision in decisions if isinstance(decision, Waiting)]
    assert len(told) == len(wishes), decisions
    return told
