"""This gateway as the store sees it: its lease, what it brings, the tickets it holds, and what is told to it."""

import asyncio
import logging
import math
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Generator
from contextlib import asynccontextmanager, contextmanager

import msgspec

from sessions.store.interface import AdmissionStore, StoreDown
from sessions.store.records import Announcement, Evicted, News, Offered, Order, Resources, Ticket
from sessions.store.settings import RENEWALS_IN_A_LEASE

log = logging.getLogger(__name__)

RETRY_S = 0.5
"""Between two tries to reach a store that is down: resumes wait for it."""
LISTEN_S = 20.0
"""How long the store may have nothing to say: a bound for connections that died without a word."""


class NodeIdentity(msgspec.Struct, frozen=True, kw_only=True):
    """`node` is this process, `host` the machine whose workers it shares; `address` is for operators and the front."""

    node: str
    host: str
    address: str = ""


class Leases(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds: of the node, and what becomes of its tickets when it dies (see Announcement)."""

    lease_s: float = 10.0
    return_s: float = 10.0
    grace_s: float = 60.0


class SeatTaken(Exception):
    """One session has one seat."""

    def __init__(self, session_id: str) -> None:
        super().__init__(f"session {session_id!r} has a seat here already, or waits for one")


class SessionNews:
    """What the store has told of one session."""

    def __init__(self) -> None:
        self.offered = asyncio.Event()
        """Whoever waits has its ticket: to be asked for once more."""
        self.lost = asyncio.Event()
        """Its ticket is gone."""


class _Held(msgspec.Struct, frozen=True):
    ticket: Ticket
    ends_at: float
    """Of its life, by the node's clock."""


class Node:
    """`async with node.running()`. `capacity` and `reserve` are asked at each announcement; call `changed` when they are others.
    `clock` is monotonic, in seconds."""

    def __init__(
        self,
        store: AdmissionStore,
        identity: NodeIdentity,
        capacity: Callable[[], Resources],
        reserve: Callable[[], Resources] = dict,
        *,
        leases: Leases = Leases(),  # noqa: B008 (a frozen value)
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.store = store
        self.identity = identity
        self.leases = leases
        self.announced_times = 0
        """Counted when an announcement begins and when it is through: who asked for a ticket meanwhile asks again."""
        self._capacity = capacity
        self._reserve = reserve
        self._clock = clock
        self._sleep = sleep
        self._ready = False
        self._draining = False
        self._incarnation: int | None = None
        """None: the store does not know this node, as far as the node knows."""
        self._renewed_at = -math.inf
        self._moves = self._moving = 0
        self._held: dict[str, _Held] = {}
        self._news: dict[str, SessionNews] = {}
        self._listeners: list[Callable[[Order], None]] = []
        self._told_of_renewal: Callable[[str], None] = _nobody
        self._announcing = asyncio.Lock()
        self._changed = asyncio.Event()
        self._last_words: set[asyncio.Task[None]] = set()

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """A store that is down is waited for, not complained of. Leaving ends the node's leases."""
        await self._try(self._announce)
        life = asyncio.create_task(self._live())
        life.add_done_callback(_complain)
        try:
            yield
        finally:
            life.cancel()
            await asyncio.wait([life, *self._last_words])
            await self._try(self._leave)

    @property
    def lease_left_s(self) -> float:
        """Counted from when the last successful renewal was sent; 0: it is over, or has never begun."""
        return max(0.0, self._renewed_at + self.leases.lease_s - self._clock())

    @property
    def tickets(self) -> tuple[Ticket, ...]:
        return tuple(held.ticket for held in self._held.values())

    def set(self, *, ready: bool | None = None, draining: bool | None = None) -> None:
        self._ready = self._ready if ready is None else ready
        self._draining = self._draining if draining is None else draining
        self.changed()

    def changed(self) -> None:
        """What this node brings is another: it announces itself again, soon."""
        self._changed.set()

    def on_renewal(self, told: Callable[[str], None]) -> None:
        """`told` hears how each word about the lease went: renewed, announced, failed."""
        self._told_of_renewal = told

    def on_order(self, heed: Callable[[Order], None]) -> None:
        self._listeners.append(heed)

    @contextmanager
    def hears(self, session_id: str) -> Generator[SessionNews]:
        """What is told of the session while the block runs. Raises SeatTaken when somebody hears of it already."""
        if session_id in self._news:
            raise SeatTaken(session_id)
        news = self._news[session_id] = SessionNews()
        try:
            yield news
        finally:
            del self._news[session_id]

    def check_lease(self) -> None:
        """Raises StoreDown while the store does not know of this node: what it would say of it is not true."""
        if self._incarnation is None or self.lease_left_s <= 0:
            raise StoreDown("this node has no lease", RETRY_S)

    @contextmanager
    def moving(self) -> Generator[None]:
        """Around each call that takes or gives a ticket: while one is on its way, the store may rightly count others than we."""
        self._moves += 1
        self._moving += 1
        try:
            yield
        finally:
            self._moving -= 1

    async def announcement_over(self) -> None:
        """Returns when none is on its way."""
        async with self._announcing:
            pass

    def hold(self, ticket: Ticket) -> None:
        self._held[ticket.session_id] = _Held(ticket, self._clock() + ticket.life_s)

    def let_go(self, session_id: str) -> None:
        self._held.pop(session_id, None)

    def leave_behind(self, session_id: str) -> None:
        """Another node comes for it. One that does not come within a lease does not come any more: then it is given back."""
        if (held := self._held.get(session_id)) is not None:
            self._held[session_id] = _Held(held.ticket, min(held.ends_at, self._clock() + self.leases.lease_s))

    async def say(self, word: Coroutine[None, None, None]) -> None:
        """To the store, also when whoever says it is cancelled."""
        task = asyncio.create_task(word)
        self._last_words.add(task)
        task.add_done_callback(self._last_words.discard)
        await asyncio.shield(task)

    async def _live(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            for work in (self._keep_renewing(), self._tell_changes(), self._listen()):
                tasks.create_task(work)

    async def _keep_renewing(self) -> None:
        while True:
            known = self._incarnation is not None
            await self._sleep(self.leases.lease_s / RENEWALS_IN_A_LEASE if known else RETRY_S)
            await self._try(self._renew)
            self._end_lives()

    async def _tell_changes(self) -> None:
        while True:
            await self._changed.wait()
            self._changed.clear()
            await self._try(self._announce)

    async def _listen(self) -> None:
        cursor = ""
        while True:
            try:
                cursor, news = await self.store.news(self.identity.node, cursor, LISTEN_S)
            except StoreDown as down:
                await self._sleep(max(RETRY_S, down.retry_after_s))
                continue
            for each in news:
                self._hear(each)

    async def _try(self, call: Callable[[], Awaitable[None]]) -> None:
        try:
            await call()
        except StoreDown as down:
            self._told_of_renewal("failed")
            if self._incarnation is not None:
                log.warning("%s; the lease holds %.1f s more", down, self.lease_left_s)
            self._incarnation = None  # whatever it has lost: the next word to it is an announcement with all tickets

    async def _renew(self) -> None:
        if self._incarnation is None:
            return await self._announce()
        sent_at, moves, quiet = self._clock(), self._moves, not self._moving
        renewed = await self.store.renew(self.identity.node, self.leases.lease_s)
        if not renewed.known or renewed.incarnation != self._incarnation:
            log.warning("the store has %s: announcing it again", "lost this node" if renewed.known else "given this node up")
            return await self._announce()
        self._renewed_at = sent_at
        self._told_of_renewal("renewed")
        if quiet and moves == self._moves and renewed.tickets != len(self._held):  # a word to the store, or from it, was lost
            log.warning("the store counts %d tickets of this node, expected %d", renewed.tickets, len(self._held))
            await self._announce()
        return None

    async def _announce(self) -> None:
        async with self._announcing:
            self.announced_times += 1
            held, sent_at = dict(self._held), self._clock()
            try:
                self._incarnation, lost = await self.store.announce(self._announcement(), self._tickets(held))
            finally:
                self.announced_times += 1
            self._renewed_at = sent_at
            self._told_of_renewal("announced")
            for session_id in lost:
                self._lose(session_id, held[session_id].ticket.number)

    async def _leave(self) -> None:
        await self.store.node_gone(self.identity.node)

    def _announcement(self) -> Announcement:
        who, leases = self.identity, self.leases
        return Announcement(
            node=who.node,
            host=who.host,
            address=who.address,
            ready=self._ready,
            draining=self._draining,
            capacity=self._capacity(),
            reserve=self._reserve(),
            lease_s=leases.lease_s,
            return_s=leases.return_s,
            grace_s=leases.grace_s,
        )

    def _tickets(self, held: dict[str, _Held]) -> tuple[Ticket, ...]:
        now, living = self._clock(), [each for each in held.values() if each.ends_at > self._clock()]
        return tuple(msgspec.structs.replace(each.ticket, life_s=each.ends_at - now) for each in living)

    def _hear(self, news: News) -> None:
        match news:
            case Offered(session_id):
                if session_id in self._news:
                    self._news[session_id].offered.set()
            case Evicted(session_id, number):
                self._lose(session_id, number)
            case Order():
                for heed in self._listeners:
                    heed(news)

    def _lose(self, session_id: str, number: int) -> None:
        """Unless it has a newer one."""
        held = self._held.get(session_id)
        if held is not None and held.ticket.number == number:
            del self._held[session_id]
            if session_id in self._news:
                self._news[session_id].lost.set()

    def _end_lives(self) -> None:
        """The store tells of the end, too, when it can."""
        now = self._clock()
        for session_id, held in list(self._held.items()):
            if held.ends_at <= now:
                self._lose(session_id, held.ticket.number)


def _complain(life: asyncio.Task[None]) -> None:
    if not life.cancelled() and (failure := life.exception()) is not None:
        log.critical("this node no longer renews its lease: nobody new can come to it", exc_info=failure)


def _nobody(_result: str) -> None:
    """Listens."""
