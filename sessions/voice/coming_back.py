"""How a client comes back to its session: from whichever node has it, or from what it has left in the store, and to a seat."""

import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack

import msgspec

from sessions.admission.admission import Admission, Applicant, Stay
from sessions.identity.principal import LOCAL, Principal
from sessions.retention.ownership import Hold, Ownership
from sessions.retention.resume_tokens import SETTLING, HeldElsewhere, ResumeRefused, SessionLost
from sessions.retention.snapshots import NotRestorable
from sessions.store.interface import Fenced, StoreDown, UnknownSession
from sessions.store.records import Claimed, Order, Priority, SessionRecord
from sessions.voice.restoring import Restored
from sessions.voice.returns import Return
from sessions.voice.running import Running

log = logging.getLogger(__name__)

YIELD_S = 2.0
"""How long a session that another node has is asked of it, or waited for while the store does not know it yet."""
FIRST_TRY_S = 0.02
"""After the first; each try after this one waits twice as long."""


class ComingBack:
    """`restore` finds what the store has of a session (see restoring). `running`: the sessions of this node. `begin` makes one of
    what was restored, and the number of its last event."""

    def __init__(
        self,
        ownership: Ownership,
        admission: Admission,
        restore: Callable[[Hold], Awaitable[Restored]],
        running: Mapping[str, Running],
        begin: Callable[[Hold, Restored, int], Running],
        sleep: Callable[[float], Awaitable[None]],
    ) -> None:
        self._ownership = ownership
        self._admission = admission
        self._restore = restore
        self._running = running
        self._begin = begin
        self._sleep = sleep

    async def back(
        self, one: Return, session_id: str, offer: bytes, principal: Principal | None, stay: Stay
    ) -> tuple[Running, bool]:
        """The session, and whether it was not here before. Raises ResumeRefused, SessionLost, HeldElsewhere, NotAdmitted,
        StoreDown."""
        while True:
            claimed, hold = await self._claimed(one, session_id, offer, principal)
            if not await one.is_alone():
                continue
            running = self._running.get(session_id)
            if running is not None and running.hold is hold and not running.is_ending:
                await self._seat_again(running, stay)
                return running, False
            if running is None:
                return await self._restored(claimed, hold, stay), True
            await running.over()

    async def _claimed(self, one: Return, session_id: str, offer: bytes, principal: Principal | None) -> tuple[Claimed, Hold]:
        waited_s, wait_s, asked = 0.0, FIRST_TRY_S, ""
        while True:
            is_seen = await self._is_seen(session_id, principal)
            async with one.claiming:
                answer = await self._ownership.claim(session_id, one.token, offer) if is_seen else None
                if isinstance(answer, tuple):
                    one.claimed(answer[1].tokens)
                    return answer
            held = await self._held_back() if answer is None else HeldElsewhere(answer.lease_s)
            if waited_s >= YIELD_S:
                raise held
            if answer is not None and answer.node != asked:
                asked = answer.node
                await self._ownership.store.order(asked, Order("yield", session_id))
            await self._sleep(wait_s)
            waited_s, wait_s = waited_s + wait_s, 2 * wait_s

    async def _is_seen(self, session_id: str, principal: Principal | None) -> bool:
        if principal is None:
            return True
        running = self._running.get(session_id)
        listed = None if running is not None else await self._ownership.store.look(session_id)
        record = running.hold.record if running is not None else None if listed is None else listed.record
        return record is not None and principal.sees(record.tenant)

    async def _held_back(self) -> HeldElsewhere:
        """What the store does not know may be put back yet. Raises ResumeRefused when that time is over."""
        left_s = await self._ownership.store.settling_s()
        if left_s <= 0:
            raise ResumeRefused
        return HeldElsewhere(min(left_s, YIELD_S), SETTLING)

    async def _seat_again(self, running: Running, stay: Stay) -> None:
        """A seat that was lent and lost meanwhile is asked for anew."""
        try:
            if await running.seat.take_up():
                return
        except StoreDown:
            return  # the ticket is as good as its node's lease
        async with AsyncExitStack() as stack:
            stack.push_async_callback(running.put_down)
            await running.stand_up()
            async with AsyncExitStack() as leaving:
                seat = await leaving.enter_async_context(self._admission.seat(_returning(running.hold.record, stay), stay.told))
                if running.is_ending:
                    raise ResumeRefused("the session has ended while its client waited for a seat")
                running.sit(seat, leaving.pop_all())
            stack.pop_all()

    async def _restored(self, claimed: Claimed, hold: Hold, stay: Stay) -> Running:
        """What another node had, or this one once, from what it has left in the store."""
        async with AsyncExitStack() as stack:
            stack.push_async_callback(self._ownership.disown, hold)
            try:
                restored = await self._restore(hold)
            except NotRestorable as lost:
                log.warning("a session cannot be restored: %s", lost)
                raise SessionLost(lost.told) from lost
            except (UnknownSession, Fenced) as gone:
                log.warning("a session is restored no more: %s", gone)
                raise ResumeRefused from gone
            async with AsyncExitStack() as leaving:
                seat = await leaving.enter_async_context(self._admission.seat(_returning(claimed.record, stay), stay.told))
                stack.pop_all()
                running = self._begin(hold, restored, claimed.seq)
                running.sit(seat, leaving.pop_all())
        async with AsyncExitStack() as stack:
            stack.push_async_callback(running.put_down)
            await running.ready()
            stack.pop_all()
        log.info("session %s goes on here", hold.session_id)
        return running


def _returning(record: SessionRecord, stay: Stay) -> Applicant:
    return Applicant(
        session_id=record.session_id,
        principal=msgspec.structs.replace(LOCAL, tenant=record.tenant, key_id=record.principal),
        kind=record.kind,
        priority=Priority.RESUME,
        wait_s=stay.longest_s,
        life_s=record.life_s,
    )
