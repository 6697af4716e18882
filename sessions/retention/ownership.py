"""Which sessions are this node's, and for how long it may act for them: leases, fences, and what becomes of both when the store
does not answer, or has lost its data."""

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager

import msgspec

from sessions.retention.sealing import Sealing
from sessions.states import State
from sessions.store.interface import Fenced, Store, StoreDown, UnknownSession
from sessions.store.records import Claimed, Fence, Kept, Missed, OwnedBy, SessionRecord, Write
from sessions.store.session_limits import OFFERED_TOKENS
from sessions.store.settings import RENEWALS_IN_A_LEASE

log = logging.getLogger(__name__)

RETRY_S = 0.5


class Hold:
    """One session in this node's hands. `fence` is that of the newest attachment. When the lease is over nothing more may be said
    for it, until it has been renewed."""

    def __init__(self, record: SessionRecord, fence: Fence, tokens: tuple[bytes, ...], clock: Callable[[], float]) -> None:
        self.record = record
        self.fence = fence
        self.tokens = tokens
        """Hashes of those that are good, as far as is known here: a store without data gets them from here. The client has
        shown that it has the first; the others it was offered since."""
        self.lost = asyncio.Event()
        """Somebody else has it. Nothing more is to be done for it here."""
        self.replaced: Callable[[], None] = _nobody
        """Is told that the store had lost it and has it from here again, without its content."""
        self.claiming: tuple[bytes, bytes] | None = None
        """Token and offer of a claim for it that is under way, or whose answer was lost: the fence may be a newer one."""
        self.asking = asyncio.Lock()
        self._clock = clock
        self._ends_at = clock() + record.life_s
        self._until = clock()
        self._contact = asyncio.Event()

    @property
    def session_id(self) -> str:
        return self.record.session_id

    @property
    def muted(self) -> bool:
        return self.lost.is_set() or self._clock() >= self._until

    @property
    def life_left_s(self) -> float:
        return self._ends_at - self._clock()

    def use(self, token: bytes) -> None:
        """The client has shown that it has this one: those before it are void, and not what somebody was offered since."""
        if token in self.tokens:
            self.tokens = self.tokens[self.tokens.index(token) :]

    def came_back(self, fence: Fence, token: bytes, offer: bytes) -> None:
        """With `token`, and was offered another one; this may be said twice."""
        self.fence = fence
        known, *offered = self.tokens if token == self.tokens[0] else (token,)
        if offer not in offered:
            offered.append(offer)
        self.tokens = (known, *offered[-OFFERED_TOKENS:])

    async def audible(self) -> None:
        """Returns when what is said may be heard. Raises Fenced when it never may be again."""
        while self.muted:
            await self.contact()

    async def contact(self) -> None:
        """Returns when the store has confirmed the hold again. Raises Fenced."""
        if not self.lost.is_set():
            self._contact.clear()
            await self._contact.wait()
        if self.lost.is_set():
            raise Fenced(self.session_id, self.fence)

    def confirmed(self, until: float) -> None:
        self._until = max(self._until, until)
        self._contact.set()

    def lose(self) -> None:
        self.lost.set()
        self._contact.set()


class Ownership:
    """`async with ownership.running()` keeps the leases. `clock` is monotonic, in seconds; what is left of a lease is counted
    from when the call that renewed it was sent."""

    def __init__(
        self,
        store: Store,
        node: str,
        lease_s: float = 10.0,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        sealing: Sealing = Sealing(),  # noqa: B008 (a fixed value)
    ) -> None:
        self.store = store
        self.node = node
        self._lease_s = lease_s
        self._clock = clock
        self._sleep = sleep
        self._sealing = sealing
        self._holds: dict[str, Hold] = {}
        self._claiming: set[str] = set()
        self._orphans: set[asyncio.Task[None]] = set()

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        renewing = asyncio.create_task(self._keep_renewing())
        try:
            yield
        finally:
            renewing.cancel()
            await asyncio.wait([renewing, *self._orphans])

    async def open(self, record: SessionRecord, token: bytes) -> Hold:
        """A new session, this node's. Raises StoreDown, and ValueError for an id in use."""
        sent_at = self._clock()
        try:
            fence = await self.store.open(record, self.node, self._lease_s, token)
        except (asyncio.CancelledError, StoreDown):  # it may have been carried out
            self._later(self.store.end(record.session_id, None))
            raise
        return self._held(Hold(record, fence, (token,), self._clock), sent_at)

    async def claim(self, session_id: str, token: bytes, offer: bytes) -> tuple[Claimed, Hold] | OwnedBy | None:
        """For a client that comes back; whoever acted for the session until now cannot any more. None: unknown session or token,
        or it has ended. Raises StoreDown."""
        sent_at, before = self._clock(), self._holds.get(session_id)
        above = None if before is None else before.fence
        if before is not None:
            before.claiming = token, offer
        self._claiming.add(session_id)
        try:
            claimed = await self.store.claim(session_id, self.node, self._lease_s, token, offer, above=above)
        finally:
            self._claiming.discard(session_id)
        if before is not None:
            before.claiming = None
        if claimed is None and before is not None and await self._is_back(before):
            return await self.claim(session_id, token, offer)
        if not isinstance(claimed, Claimed):
            return claimed
        if before is None or before.lost.is_set() or claimed.moved:
            if before is not None:
                before.lose()
            return claimed, self._held(Hold(claimed.record, claimed.fence, (token, offer), self._clock), sent_at)
        before.came_back(claimed.fence, token, offer)
        return claimed, self._held(before, sent_at)

    async def write(self, hold: Hold, write: Write) -> None:
        """Raises StoreDown; Fenced, and then the session is not ours any more. What the store has lost it gets back first, and
        `hold.replaced` is told that its content is missing."""
        sent_at, fence = self._clock(), hold.fence
        try:
            await self.store.write(hold.session_id, fence, self._sealing.of(hold.session_id).write(write))
        except UnknownSession:
            await self._put_back(hold)
            return await self.write(hold, write)
        except Fenced:
            if await self._is_newer(hold, fence):
                return await self.write(hold, write)
            self._lose(hold)
            raise
        hold.confirmed(sent_at + self._lease_s)
        return None

    async def delivered(self, hold: Hold, token: bytes) -> None:
        """The client has this token. A store that cannot be told now is not told: older tokens stay good for a while."""
        hold.use(token)
        try:
            await self.store.delivered(hold.session_id, hold.fence, token)
        except (StoreDown, UnknownSession, Fenced):
            log.info("session %s: the store was not told that its token arrived", hold.session_id)

    async def missed(self, hold: Hold, after: int) -> Missed:
        """Raises Unreadable, as `kept` and `result` do: see `sealing`."""
        return self._sealing.of(hold.session_id).missed(await self.store.missed(hold.session_id, hold.fence, after))

    async def kept(self, hold: Hold) -> Kept:
        return self._sealing.of(hold.session_id).kept(await self.store.kept(hold.session_id, hold.fence))

    async def result(self, session_id: str, event_id: str) -> bytes | None:
        result = await self.store.result(session_id, event_id)
        return None if result is None else self._sealing.of(session_id).result(event_id, result)

    async def usage(self, hold: Hold) -> Mapping[str, float]:
        """All so far, on every node."""
        listed = await self.store.look(hold.session_id)
        return {} if listed is None else listed.usage

    async def disown(self, hold: Hold) -> None:
        """Whoever claims it next gets it at once. A store that is down hears nothing: the lease ends by itself."""
        self.forget(hold)
        await self._disown(hold.session_id)

    async def let_go(self, session_id: str) -> None:
        """If it is not held here: a claim that was cancelled, or too late, may have been carried out, and nobody heard of it."""
        if session_id not in self._holds and session_id not in self._claiming:
            await self._disown(session_id)

    async def end(self, hold: Hold) -> None:
        """Nothing of it is left in the store; when the store is down, after its grace."""
        self.forget(hold)
        try:
            await self.store.end(hold.session_id, hold.fence)
        except Fenced:
            log.info("session %s ends here; another owner has it", hold.session_id)
        except StoreDown as down:
            log.warning("session %s ends without a word to the store: %s", hold.session_id, down)

    def forget(self, hold: Hold) -> None:
        if self._holds.get(hold.session_id) is hold:
            del self._holds[hold.session_id]

    async def _disown(self, session_id: str) -> None:
        try:
            await self.store.disown(session_id, self.node)
        except StoreDown as down:
            log.warning("session %s is put down without a word to the store: %s", session_id, down)

    async def renew(self) -> None:
        """All of this node's sessions, in one call."""
        held = dict(self._holds)
        if not held:
            return
        sent_at = self._clock()
        fences = {session_id: hold.fence for session_id, hold in held.items()}
        still = await self.store.renew_owned(fences, self._lease_s)
        for session_id, hold in held.items():
            if hold.fence != fences[session_id] or self._holds.get(session_id) is not hold:
                continue
            if still.get(session_id, False):
                hold.confirmed(sent_at + self._lease_s)
            else:
                await self._look_again(hold, fences[session_id])

    async def _look_again(self, hold: Hold, fence: Fence) -> None:
        if not await self._is_back(hold) and not await self._is_newer(hold, fence):
            self._lose(hold)

    async def _is_back(self, hold: Hold) -> bool:
        """Whether the store did not know it any more, and has it from here again. Raises StoreDown."""
        if await self.store.look(hold.session_id) is not None:
            return False
        try:
            await self._put_back(hold)
        except Fenced:
            return False
        return True

    async def _is_newer(self, hold: Hold, fence: Fence) -> bool:
        """Whether the hold has a newer one than `fence`, which the store does not take any more: a claim of ours may have been
        carried out of which nobody heard. It is said again. Raises StoreDown."""
        async with hold.asking:
            if hold.fence != fence or hold.claiming is None:
                return hold.fence != fence
            sent_at = self._clock()
            token, offer = hold.claiming
            again = await self.store.claim(hold.session_id, self.node, self._lease_s, token, offer, above=fence)
            hold.claiming = None
            if not isinstance(again, Claimed):
                return False
            if again.moved:  # who had it meanwhile has put it down: what we remember of it is old
                await self.store.disown(hold.session_id, self.node)
                return False
            hold.came_back(again.fence, token, offer)
            hold.confirmed(sent_at + self._lease_s)
            return True

    async def _put_back(self, hold: Hold) -> None:
        """The store does not know the session any more. If it has lost its data, or our lease holds, nobody has ended it: it gets
        it from here. Raises Fenced, StoreDown."""
        incarnation = await self.store.incarnation()
        if hold.life_left_s <= 0 or (hold.muted and incarnation == hold.fence.incarnation):
            self._lose(hold)
            raise Fenced(hold.session_id, hold.fence)
        record = msgspec.structs.replace(hold.record, life_s=hold.life_left_s, state=State.ACTIVE)
        sent_at = self._clock()
        try:
            hold.fence = await self.store.restore(record, self.node, self._lease_s, hold.tokens, hold.fence)
        except Fenced:
            self._lose(hold)
            raise
        log.warning("session %s: the store had lost it, and has it from here again", hold.session_id)
        hold.confirmed(sent_at + self._lease_s)
        hold.replaced()

    async def _keep_renewing(self) -> None:
        wait_s = self._lease_s / RENEWALS_IN_A_LEASE
        while True:
            await self._sleep(wait_s)
            try:
                await self.renew()
                wait_s = self._lease_s / RENEWALS_IN_A_LEASE
            except StoreDown as down:
                log.warning("%s; %d sessions go on as long as their leases hold", down, len(self._holds))
                wait_s = min(RETRY_S, wait_s)

    def _held(self, hold: Hold, sent_at: float) -> Hold:
        self._holds[hold.session_id] = hold
        hold.confirmed(sent_at + self._lease_s)
        return hold

    def _lose(self, hold: Hold) -> None:
        self.forget(hold)
        hold.lose()

    def _later(self, call: Coroutine[None, None, object]) -> None:
        async def carried_out() -> None:
            try:
                await call
            except StoreDown:
                return  # it ends by itself, after its lease and its grace

        task = asyncio.create_task(carried_out())
        self._orphans.add(task)
        task.add_done_callback(self._orphans.discard)


def _nobody() -> None:
    """Keeps the content."""
