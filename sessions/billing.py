"""What tenants have used, told to the store: of sessions while they run and when they end, of one-shot requests at once.

The bill of a session never runs ahead of what is written with it: a node that dies takes nothing with it that another one would
have to count again, and what it had written and not billed is billed by whoever finds the orphan.
"""

import asyncio
import logging
import uuid
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager

import msgspec

from sessions.store.interface import AdmissionStore, Fenced, StoreDown, UnknownSession
from sessions.usage import UsageMeter

log = logging.getLogger(__name__)

RETRY_S = 1.0
UNTOLD = 10_000
"""Bills that the store could not be told yet. Overflow policy: the oldest go, and the log says so."""
ACCOUNT_S = 3600.0
"""One-shot requests of a tenant are billed under one name for so long: the store forgets a name a day after its last bill."""


class _Bill(msgspec.Struct, frozen=True):
    tenant: str
    usage: Mapping[str, float]
    life_s: float = 0.0


class _Followed(msgspec.Struct):
    tenant: str
    meter: UsageMeter
    write: Callable[[], Awaitable[None]]
    life_s: float
    billed: Mapping[str, float] = {}


class _Account(msgspec.Struct, frozen=True):
    name: str
    meter: UsageMeter
    opened_at: float


class Billing:
    """`async with billing.running()`. `every_s`: how often running sessions are billed. `clock` is monotonic, in seconds."""

    def __init__(
        self,
        store: AdmissionStore,
        every_s: float,
        clock: Callable[[], float],
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._store = store
        self._every_s = every_s
        self._clock = clock
        self._sleep = sleep
        self._followed: dict[str, _Followed] = {}
        self._accounts: dict[str, _Account] = {}
        self._untold: dict[str, _Bill] = {}
        """By session or account, its newest total: a bill told twice is the same bill."""
        self._news = asyncio.Event()
        self._telling = asyncio.Lock()

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """When the block ends everything is told, if the store can be reached."""
        async with asyncio.TaskGroup() as tasks:
            work = [tasks.create_task(each) for each in (self._bill_running(), self._tell_news())]
            try:
                yield
            finally:
                for task in work:
                    task.cancel()
        try:
            await self._tell_all()
        except StoreDown as down:
            log.error("%s: %d bills are lost", down, len(self._untold))

    def follow(
        self, tenant: str, session_id: str, meter: UsageMeter, write: Callable[[], Awaitable[None]], life_s: float
    ) -> None:
        """A session that runs here, and lives `life_s` at most. `write` writes the meter's totals with the session, and says so
        in `meter.written`."""
        self._followed[session_id] = _Followed(tenant, meter, write, life_s)

    def leave(self, session_id: str) -> None:
        """It goes on at another node, which bills it from now on."""
        self._followed.pop(session_id, None)

    async def close(self, session_id: str) -> None:
        """It has ended: its last bill, before its record goes. While the store is down it is kept."""
        followed = self._followed.pop(session_id, None)
        if followed is not None:
            self._note(session_id, _Bill(followed.tenant, followed.meter.totals, followed.life_s))
            try:
                await self._tell(session_id)
            except StoreDown as down:
                log.warning("session %s is billed later: %s", session_id, down)

    def add(self, tenant: str, used: Mapping[str, float]) -> None:
        """By a one-shot request."""
        account = self._account(tenant)
        for what, amount in used.items():
            account.meter.add(what, amount)
        self._note(account.name, _Bill(tenant, account.meter.totals))

    @property
    def untold(self) -> int:
        return len(self._untold)

    def _account(self, tenant: str) -> _Account:
        account = self._accounts.get(tenant)
        if account is None or self._clock() - account.opened_at > ACCOUNT_S:
            account = self._accounts[tenant] = _Account(f"rest_{uuid.uuid4().hex[:20]}", UsageMeter(), self._clock())
        return account

    async def _bill_running(self) -> None:
        while True:
            await self._sleep(self._every_s)
            for session_id in tuple(self._followed):
                await self._bring_up(session_id)

    async def _bring_up(self, session_id: str) -> None:
        followed = self._followed.get(session_id)
        if followed is None:
            return
        meter = followed.meter
        if meter.totals != meter.written:
            try:
                await followed.write()
            except (StoreDown, Fenced, UnknownSession) as failure:
                log.info("the usage of session %s is not written now: %s", session_id, failure)
        if session_id in self._followed and meter.written != followed.billed:
            followed.billed = meter.written
            self._note(session_id, _Bill(followed.tenant, meter.written, followed.life_s))

    def _note(self, name: str, bill: _Bill) -> None:
        self._untold[name] = bill
        while len(self._untold) > UNTOLD:
            lost = next(iter(self._untold))
            log.error("the store is down for too long: the usage of %s is not billed: %s", lost, self._untold.pop(lost))
        self._news.set()

    async def _tell_news(self) -> None:
        while True:
            await self._news.wait()
            self._news.clear()
            try:
                await self._tell_all()
            except StoreDown as down:
                self._news.set()
                await self._sleep(max(RETRY_S, down.retry_after_s))

    async def _tell_all(self) -> None:
        for name in tuple(self._untold):
            await self._tell(name)

    async def _tell(self, name: str) -> None:
        """In order: an older total after a newer one would be taken for old, and it is."""
        async with self._telling:
            bill = self._untold.get(name)
            if bill is None:
                return
            await self._store.bill(bill.tenant, name, bill.usage, bill.life_s)
            if self._untold.get(name) is bill:
                del self._untold[name]
