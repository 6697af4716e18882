"""One session in a task of its own, which outlives its transports."""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack

from engines import logs
from sessions.admission.admission import Seat
from sessions.billing import Billing
from sessions.retention.client_results import ClientResults
from sessions.retention.journal import Said
from sessions.retention.life import Life
from sessions.retention.ownership import Hold, Ownership
from sessions.retention.resume_tokens import hashed
from sessions.retention.snapshots import Snapshots
from sessions.retention.watch import Expiry, Resume
from sessions.states import State, step
from sessions.store.interface import Fenced, StoreDown
from sessions.voice.attached import Attached, Dismissal
from sessions.voice.events import Event, Expiring
from sessions.voice.outgoing import Outgoing
from sessions.voice.playout import Player
from sessions.voice.session import VoiceSession
from sessions.voice.teller import Bearer

log = logging.getLogger(__name__)

PUT_DOWN_S = 1.0
"""How long a session that is put down may take to tell what becomes of its answer."""


class Running:
    """To be given a seat (`sit`) before it is started, and a life when it is. `wall_clock` is in Unix seconds."""

    seat: Seat
    life: Life

    def __init__(
        self,
        session: VoiceSession,
        hold: Hold,
        outgoing: Outgoing,
        results: ClientResults,
        ownership: Ownership,
        snapshots: Snapshots,
        billing: Billing,
        wall_clock: Callable[[], float],
    ) -> None:
        self.session = session
        self.hold = hold
        self.outgoing = outgoing
        self.results = results
        self.state = State.OPENING
        self.attached: Attached | None = None
        self._ownership = ownership
        self._snapshots = snapshots
        self._billing = billing
        self._wall_clock = wall_clock
        self._leave_seat = AsyncExitStack()
        self._watching: asyncio.Task[None] | None = None
        self._ready = asyncio.Event()
        self._ending = asyncio.Event()
        self._is_put_down = self._goes_elsewhere = False

    @property
    def session_id(self) -> str:
        return self.hold.session_id

    def sit(self, seat: Seat, leave: AsyncExitStack) -> None:
        """`leave` gives the seat back."""
        self.seat = seat
        self._leave_seat = leave
        if self._ready.is_set():
            self._watch_seat()

    async def stand_up(self) -> None:
        """Its seat is gone; it may get another one."""
        if self._watching is not None:
            self._watching.cancel()
        await self._leave_seat.aclose()

    def start(self, life: Life, over: Callable[[], None]) -> None:
        self.life = life
        self._task = asyncio.create_task(self._run(), name=self.session_id)
        self._task.add_done_callback(lambda _: over())

    async def ready(self) -> None:
        """Returns when it runs, or has failed to."""
        await self._ready.wait()

    @property
    def is_between_turns(self) -> bool:
        """Or over."""
        return self.is_ending or self.session.is_between_turns

    @property
    def is_ending(self) -> bool:
        return self._ending.is_set()

    async def over(self) -> None:
        await asyncio.wait({self._task})

    # ── transports

    def take(self, attached: Attached) -> None:
        """This transport is the session's, and no other."""
        before, self.attached = self.attached, attached
        if before is not None:
            before.dismiss(Dismissal.SUPERSEDED)
        self.outgoing.teller.begin(attached.fence)
        self.life.attached()

    async def come_back(self, attached: Attached, play: Player | None, last_seq: int | None) -> Resume:
        """Its client has all up to `last_seq`; None: it does not say."""
        self.session.detach()
        self.session.stop_reading()
        resumed = None if last_seq is None else await self.outgoing.resumed(last_seq)
        if attached.is_current and not self.is_ending:  # it may have lost the session, or the session have ended, meanwhile
            self.session.attach(attached.fence, play, resumed, () if resumed is not None else self.outgoing.untold())
            self._enter(State.ACTIVE)
        return Resume.RESYNC if resumed is None else Resume.REPLAYED

    async def leave(self, attached: Attached) -> None:
        """The transport is gone. Raises what has broken the session, if anything."""
        if self.attached is not attached:
            return
        if attached.leaves or self.session.ended:
            await self.end()
            self._task.result()
        elif not self._ending.is_set():
            self.attached = None
            self.session.detach()
            self._enter(State.DETACHED)
            self.outgoing.journal.keep_snapshot()
            self.life.detached()
            self.session.spawn(self._lend())

    def bearer(self) -> Bearer | None:
        if self.attached is None:
            return None
        held_until_s = self._wall_clock() + min(self.life.grace_s, self.hold.life_left_s)
        return Bearer(self.attached.token, held_until_s)

    def note(self, group: Sequence[Event]) -> tuple[Said, ...]:
        return self.outgoing.note(group, self.bearer())

    def delivered(self, attached: Attached) -> None:
        self.session.spawn(self._ownership.delivered(self.hold, hashed(attached.secret)))

    # ── ends

    async def end(self, why: Dismissal = Dismissal.CLOSED) -> None:
        """Returns when nothing is left of it, here or in the store; but for what rests there if it was being put down."""
        self._stop(why, State.CLOSING)
        await self.over()

    async def put_down(self, why: Dismissal = Dismissal.MOVED, *, with_seat: bool = False) -> None:
        """Returns when it rests in the store, where anybody may take it up who has its token. `with_seat`: another node waits for
        it, and takes over its seat."""
        self._is_put_down = not self._ending.is_set() or self._is_put_down
        self._goes_elsewhere = with_seat
        self._stop(why, State.DETACHED)
        await self.over()

    def expire(self, why: Expiry) -> None:
        log.info("session %s ends by itself: %s", self.session_id, why)
        self._stop(Dismissal.EXPIRED, State.EXPIRED)

    def warn(self, ahead_s: float) -> None:
        if self.attached is not None and not self.session.ended:
            self.session.spawn(self.session.tell(Expiring(self.session.config, self._wall_clock() + ahead_s)))

    def unattended(self) -> None:
        """Nobody came back to hear what was being said."""
        if self.session.ended:
            return
        log.info("session %s: nobody came back to hear the answer", self.session_id)
        self.session.give_up()
        self.session.spawn(self.outgoing.write_down(self.session.groups()))

    def tell_failure(self) -> None:
        """When no transport is there that would."""
        if self.attached is None and not self._task.cancelled() and (failure := self._task.exception()) is not None:
            log.error("session %s failed while nobody was connected", self.session_id, exc_info=failure)

    def _enter(self, state: State) -> None:
        if state is not self.state:
            self.state = step(self.session_id, self.state, state)
            self.outgoing.journal.enter(state)

    def _stop(self, why: Dismissal, state: State) -> None:
        if self._ending.is_set():
            return
        if state is not State.DETACHED:
            self.state = step(self.session_id, self.state, state)
        if self.attached is not None:
            self.attached.dismiss(why)
        self.life.end()
        self._ending.set()

    async def _run(self) -> None:
        failed = True
        try:
            with logs.about(session=self.session_id):
                async with self.session:
                    self.session.spawn(self._write_down())
                    self.session.spawn(self._until_lost())
                    self._watch_seat()
                    self._enter(State.ACTIVE)
                    self.outgoing.journal.keep_snapshot()
                    self._ready.set()
                    await self._ending.wait()
                    if self._is_put_down:
                        await self._rest()
            failed = False
        finally:
            self._ready.set()
            await self._depart(failed=failed)

    async def _rest(self) -> None:
        """What was being said stops, and all is written down."""
        self.session.detach()
        writing = self.session.spawn(self.outgoing.write_down(self.session.groups()))
        with contextlib.suppress(TimeoutError, Fenced, StoreDown):
            async with asyncio.timeout(PUT_DOWN_S):
                await self.session.fall_silent()
                self.session.say_no_more()
                await writing
                await self.outgoing.rest()
        writing.cancel()

    async def _depart(self, *, failed: bool) -> None:
        self.life.end()
        if self.attached is not None:
            self.attached.dismiss(Dismissal.CLOSED)
        if self.hold.lost.is_set():
            self._billing.leave(self.session_id)
        else:
            await self._billing.close(self.session_id)
        if self._is_put_down and not failed:
            self.seat.stays_behind = self._goes_elsewhere
            await self._leave_seat.aclose()
            return await self._ownership.disown(self.hold)
        end = State.FAILED if failed else State.CLOSED
        if self.state is not State.EXPIRED:
            self.state = step(self.session_id, self.state, end)
        await self._leave_seat.aclose()
        if not self.hold.lost.is_set():
            await self._ownership.end(self.hold)
            await self._forget_snapshot()
        return None

    async def _forget_snapshot(self) -> None:
        try:
            await self._snapshots.forget(self.session_id)
        except OSError as kept:  # those that are old are swept away
            log.error("session %s has ended, and a file of it cannot be deleted now: %s", self.session_id, kept)

    async def _write_down(self) -> None:
        with contextlib.suppress(Fenced):
            await self.outgoing.journal.run()

    async def _until_lost(self) -> None:
        await self.hold.lost.wait()
        log.info("session %s: another owner has it", self.session_id)
        self._stop(Dismissal.SUPERSEDED, State.CLOSING)

    def _watch_seat(self) -> None:
        self._watching = self.session.spawn(self._until_unseated(self.seat))

    async def _until_unseated(self, seat: Seat) -> None:
        """Somebody else needed the seat, or its time is over. What the session is stays in the store."""
        await seat.lost.wait()
        log.info("session %s has lost its seat", self.session_id)
        self._is_put_down = not self._ending.is_set() or self._is_put_down
        self._stop(Dismissal.MOVED, State.DETACHED)

    async def _lend(self) -> None:
        """A newcomer to a full server may have the seat."""
        with contextlib.suppress(StoreDown):
            await self.seat.keep(self.life.grace_s, 0.0)
