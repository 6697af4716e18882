"""Who may run: a seat for a session or a request, a place in the waiting room until there is one, or no."""

import asyncio
import contextlib
import random
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager

import msgspec

from sessions.admission.node import Node, SessionNews
from sessions.admission.seats import REQUEST, Seats
from sessions.admission.settings import AdmissionSettings
from sessions.admission.watch import AdmissionWatch, Unwatched
from sessions.identity.principal import Principal
from sessions.identity.tenants import Tenants
from sessions.store.interface import StoreDown
from sessions.store.records import Admitted, Ask, Decision, Priority, Refusal, Refused, Resources, Ticket, Waiting

LONGEST_LIFE_S = 24 * 3600.0
ASKS_IN_A_PLACE = 3
"""A place is asked for again so often before it would be given up."""
JITTER = 0.5
"""Of a time after which to try again: or all who were refused come back at once."""


Told = Callable[[Waiting], None]


class Stay(msgspec.Struct, frozen=True, kw_only=True):
    """How a client waits for its seat. `told` hears of its place, each time it is asked for. `longest_s` None: as long as
    anybody; 0: not at all. `visit`: it does not stay but asks once, for the session of this id, and its place is kept until it
    may ask again; empty: it stays."""

    told: Told | None = None
    longest_s: float | None = None
    visit: str = ""


class Applicant(msgspec.Struct, frozen=True, kw_only=True):
    """`session_id` is new, or that of a session that comes back (priority RESUME). `cost` None: that of its kind. `wait_s` None:
    as long as anybody; 0: not at all. `visits`: it asks once, and is told its place, which is kept until it may ask again."""

    session_id: str
    principal: Principal
    kind: str
    cost: Resources | None = None
    priority: Priority = Priority.INTERACTIVE
    wait_s: float | None = None
    visits: bool = False
    life_s: float = LONGEST_LIFE_S


_WORDS = {
    Refusal.QUOTA: "all sessions that you may have at a time are taken; end one first",
    Refusal.FULL: "all sessions of this server are taken; try again later",
    Refusal.WAITED: "nothing has become free in time; try again later",
    Refusal.TOO_BIG: "this needs more than the whole server has",
    Refusal.DRAINING: "the server is stopping; try again in a moment",
    Refusal.SETTLING: "the server waits for those who were here before; try again in a moment",
}


NO_SESSIONS = "you may have no sessions here: the operator of this server has set your quota to 0"


class NotAdmitted(Exception):
    """`resource` is what is lacking; empty where it is none."""

    def __init__(self, reason: Refusal, resource: str, retry_after_s: float, words: str) -> None:
        super().__init__(words)
        self.reason = reason
        self.resource = resource
        self.retry_after_s = retry_after_s


class HasToWait(Exception):
    """A visitor's place, kept for a while: to be asked for again after `retry_after_s`."""

    def __init__(self, waiting: Waiting, retry_after_s: float) -> None:
        super().__init__("all sessions of this server are taken; ask again for your place")
        self.waiting = waiting
        self.retry_after_s = retry_after_s


class Seat:
    """The right to run, for as long as the block of `Admission.seat` lasts."""

    def __init__(self, admission: "Admission", ask: Ask, ticket: Ticket, lost: asyncio.Event) -> None:
        self.ticket = ticket
        self.lost = lost
        """The ticket is gone: lent to somebody else, or at the end of its life."""
        self.stays_behind = False
        """Set when another node comes for the session: leaving the block leaves the ticket to it, for as long as a lease."""
        self._admission = admission
        self._ask = ask

    async def keep(self, keep_s: float, lend_after_s: float) -> bool:
        """Its client is gone: the ticket is kept for so long, lent after so long. False: it is lost. Raises StoreDown."""
        return not self.lost.is_set() and await self._admission.keep(self.ticket.session_id, keep_s, lend_after_s)

    async def take_up(self) -> bool:
        """Its client is back: the ticket is a full one again. False: it is gone. Raises StoreDown."""
        if self.lost.is_set():
            return False
        decision = await self._admission.ask(msgspec.structs.replace(self._ask, may_wait=False, priority=Priority.RESUME))
        if isinstance(decision, Admitted):
            self.ticket = decision.ticket
        return isinstance(decision, Admitted) and not self.lost.is_set()


class Admission:
    """`clock` is monotonic, in seconds."""

    def __init__(
        self,
        node: Node,
        settings: AdmissionSettings,
        tenants: Tenants,
        seats: Seats,
        *,
        clock: Callable[[], float] = time.monotonic,
        draw: random.Random | None = None,
    ) -> None:
        self._node = node
        self.settings = settings
        self.tenants = tenants
        self.seats = seats
        self.watch: AdmissionWatch = Unwatched()
        self._clock = clock
        self._draw = draw or random.Random()

    @asynccontextmanager
    async def seat(self, applicant: Applicant, told: Told | None = None) -> AsyncGenerator[Seat]:
        """Waits for it as long as the applicant may; `told` hears of the place, each time it is asked for. Whoever is cancelled
        meanwhile leaves the waiting room. Raises NotAdmitted, HasToWait, SeatTaken, StoreDown."""
        asked = self._asked(applicant)
        with self._node.hears(asked.session_id) as news:
            seat = await self._seated(asked, news, applicant.visits, told)
            try:
                yield seat
            finally:
                if seat.stays_behind:
                    self._node.leave_behind(asked.session_id)
                else:
                    self._node.let_go(asked.session_id)
                    await self._give_back(asked.session_id)

    async def _seated(self, asked: Ask, news: SessionNews, visits: bool, told: Told | None) -> Seat:
        """Raises as `seat` does."""
        with self.watch.asking(asked.kind) as asking:

            def heard(place: Waiting) -> None:
                asking.told(place)
                if told is not None:
                    told(place)

            match await self._decided(asked, news, visits, heard):
                case Admitted(ticket):
                    return Seat(self, asked, ticket, news.lost)
                case Waiting() as place:
                    raise HasToWait(place, self._later(self._ask_again_s))
                case Refused(reason, resource, retry_after_s):
                    words = NO_SESSIONS if asked.quota.get(resource) == 0 else _WORDS[reason]
                    raise NotAdmitted(reason, resource, self._later(retry_after_s), words)

    async def ask(self, asked: Ask) -> Decision:
        """Once. What is admitted is held by this node."""
        node = self._node
        while True:
            node.check_lease()
            await node.announcement_over()
            announced_times = node.announced_times
            with node.moving():
                decision = await node.store.ask(asked)
            if not isinstance(decision, Admitted):
                return decision
            if node.announced_times == announced_times:  # else that may have given this ticket back, as unknown
                node.hold(decision.ticket)
                return decision

    async def keep(self, session_id: str, keep_s: float, lend_after_s: float) -> bool:
        """See Seat.keep."""
        with self._node.moving():
            return await self._node.store.keep(session_id, self._node.identity.node, keep_s, lend_after_s)

    async def _decided(self, asked: Ask, news: SessionNews, visits: bool, told: Callable[[Waiting], None]) -> Decision:
        """Of a visitor also Waiting. However else it ends, nothing is left in the store of who is not admitted."""
        async with AsyncExitStack() as broken_off:
            broken_off.push_async_callback(self._give_back, asked.session_id)
            decision = await (self.ask(asked) if visits else self._stay(asked, news, told))
            broken_off.pop_all()
        return decision

    async def _stay(self, asked: Ask, news: SessionNews, told: Callable[[Waiting], None]) -> Decision:
        """In the waiting room, until it is over. Who has waited waits on while the store is down, as those who talk talk on."""
        place: Waiting | None = None
        answered_at = self._clock()
        settling_until = answered_at + (asked.longest_wait_s if asked.may_wait else 0.0)
        while True:
            news.offered.clear()
            try:
                decision = await self.ask(asked)
            except StoreDown as down:
                if place is None or self._clock() - answered_at > self._node.leases.lease_s:
                    raise
                await self._pause(news, down.retry_after_s)
                continue
            answered_at = self._clock()
            match decision:
                case Waiting():
                    place = decision if place is None else _no_further_back(decision, place)
                    told(place)
                    await self._pause(news, self._ask_again_s)
                case Refused(Refusal.SETTLING, _, retry_after_s) if answered_at + retry_after_s <= settling_until:
                    await self._pause(news, retry_after_s)
                case _:
                    return decision

    async def _pause(self, news: SessionNews, longest_s: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(longest_s):
                await news.offered.wait()

    async def _give_back(self, session_id: str) -> None:
        await self._node.say(self._release(session_id))

    async def _release(self, session_id: str) -> None:
        # When the store is down: its count of this node's tickets is wrong then, which the next announcement puts right.
        with self._node.moving(), contextlib.suppress(StoreDown):
            await self._node.store.release(session_id, self._node.identity.node)

    def _asked(self, applicant: Applicant) -> Ask:
        tenant, settings = applicant.principal.tenant, self.settings
        limits = self.tenants.of(tenant)
        cost = dict(self.seats.cost(applicant.kind) if applicant.cost is None else applicant.cost)
        quota: dict[str, float] = {}
        if applicant.kind != REQUEST and limits.sessions is not None:
            sessions = f"tenant:{tenant}:sessions"
            quota[sessions], cost[sessions] = limits.sessions, 1
        wait_s = settings.longest_wait_s if applicant.wait_s is None else min(applicant.wait_s, settings.longest_wait_s)
        return Ask(
            session_id=applicant.session_id,
            tenant=tenant,
            kind=applicant.kind,
            node=self._node.identity.node,
            cost=cost,
            quota=quota,
            priority=limits.priority_for(applicant.priority),
            weight=limits.weight,
            life_s=applicant.principal.life_s(applicant.life_s),
            may_wait=wait_s > 0 and settings.longest_queue > 0,
            place_s=settings.place_s,
            longest_queue=settings.longest_queue,
            longest_wait_s=wait_s,
        )

    @property
    def _ask_again_s(self) -> float:
        return self.settings.place_s / ASKS_IN_A_PLACE

    def _later(self, after_s: float) -> float:
        return after_s * self._draw.uniform(1, 1 + JITTER)


def _no_further_back(place: Waiting, before: Waiting) -> Waiting:
    """Also when the store has lost its data meanwhile, and everybody is new to it."""
    return place if place.position <= before.position else Waiting(before.position, place.estimate_s)
