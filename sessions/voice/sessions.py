"""Opens voice sessions and keeps them: on this node, and as long as it is theirs."""

import asyncio
import logging
import time
import uuid
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from types import TracebackType

import msgspec

from engines import logs
from engines.requests import Graph
from sessions.admission.admission import Admission, Applicant, Stay
from sessions.admission.node import SeatTaken
from sessions.admission.seats import VOICE
from sessions.billing import Billing
from sessions.identity.principal import LOCAL, Principal
from sessions.retention.client_results import ClientResults
from sessions.retention.life import CallLater, Life
from sessions.retention.orphans import KEPT_S
from sessions.retention.ownership import Hold, Ownership
from sessions.retention.resume_tokens import ResumeRefused, Stopped, Superseded, hashed, new_secret, read_token
from sessions.retention.settings import Lifetime, SessionLimits
from sessions.retention.snapshots import Snapshots
from sessions.retention.warm import Warm
from sessions.retention.watch import Expiry, SessionWatch, Unwatched
from sessions.states import State
from sessions.store.interface import StoreDown
from sessions.store.records import Fence, Order, Priority, SessionRecord
from sessions.voice.attached import Attached, Dismissal
from sessions.voice.coming_back import ComingBack
from sessions.voice.config import VoiceConfig
from sessions.voice.conversation import Sound
from sessions.voice.draining import put_down_between_turns
from sessions.voice.outgoing import Outgoing
from sessions.voice.playout import Player
from sessions.voice.restoring import Restored, restore
from sessions.voice.returns import Returns
from sessions.voice.running import Running
from sessions.voice.session import VoiceSession
from sessions.voice.settings import VoiceSettings
from sessions.voice.teller import Edge
from sessions.voice.unfinished import UnfinishedAnswers

log = logging.getLogger(__name__)


def new_id(prefix: str) -> str:
    return f"{prefix}_{uuid.uuid4().hex[:20]}"


class SessionInfo(msgspec.Struct, frozen=True):
    session_id: str
    kind: str
    state: State
    fence: Fence | None


class VoiceSessions:
    """`async with sessions:` leaving puts them all down. `voices` maps a voice's name to the graph's output that speaks with it.
    `edge` makes what a session says on the wire. `clock` is monotonic, `wall_clock` Unix time, both in seconds."""

    def __init__(
        self,
        graph: Graph,
        settings: VoiceSettings,
        voices: Mapping[str, str],
        edge: Edge,
        *,
        limits: SessionLimits,
        ownership: Ownership,
        admission: Admission,
        snapshots: Snapshots,
        billing: Billing,
        clock: Callable[[], float] = time.monotonic,
        wall_clock: Callable[[], float] = time.time,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        call_later: CallLater | None = None,
        ids: Callable[[str], str] = new_id,
    ) -> None:
        self._graph = graph
        self._settings = settings
        self._voices = voices
        self._edge = edge
        self._limits = limits
        self._ownership = ownership
        self._admission = admission
        self._snapshots = snapshots
        self._billing = billing
        self._clock = clock
        self._wall_clock = wall_clock
        self._sleep = sleep
        self._call_later = call_later or asyncio.get_running_loop().call_later
        self._ids = ids
        self.watch: SessionWatch = Unwatched()
        self._queued: dict[str, None] = {}
        self._running: dict[str, Running] = {}
        restored = partial(restore, ownership=ownership, snapshots=snapshots, voices=voices)
        self._coming_back = ComingBack(ownership, admission, restored, self._running, self._begin_again, self._sleep)
        self._returns = Returns()
        self._warm = Warm(limits.warm_mb << 20)
        self._work: set[asyncio.Task[None]] = set()
        self.sound = Sound()
        """Of the answers of sessions that are over."""

    async def __aenter__(self) -> "VoiceSessions":
        await self._snapshots.sweep(self._limits.longest_anywhere_s)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, trace: TracebackType | None
    ) -> None:
        await asyncio.gather(*(running.put_down() for running in self._running.values()))
        await asyncio.gather(*self._work)

    def sessions(self) -> tuple[SessionInfo, ...]:
        """Those on this node, also those that wait for a seat."""
        queued = (SessionInfo(session_id, VOICE, State.QUEUED, None) for session_id in self._queued)
        return (*queued, *(SessionInfo(each.session_id, VOICE, each.state, each.hold.fence) for each in self._running.values()))

    @asynccontextmanager
    async def open(
        self,
        config: VoiceConfig,
        play: Player | None = None,
        principal: Principal = LOCAL,
        stay: Stay = Stay(),  # noqa: B008 (a frozen value)
    ) -> AsyncGenerator[Attached]:
        """A new session and its first transport. Raises NotAdmitted, HasToWait, SeatTaken, StoreDown. What the block and the
        session's tasks log is about this session. However the block ends: unless the client has said goodbye, the session waits
        for it."""
        session_id, secret = stay.visit or self._ids("sess"), new_secret()
        lifetime = self._limits.lifetime(VOICE, principal.tenant, principal.longest_session_s)
        kept_s = max(lifetime.grace_s, self._limits.detached_grace_s) + KEPT_S  # its seat is kept for the second
        record = _record(session_id, config, principal, lifetime, kept_s)
        async with AsyncExitStack() as stack:
            self._queued[session_id] = None
            stack.callback(self._queued.pop, session_id, None)
            seat = await stack.enter_async_context(self._admission.seat(_newcomer(record, principal, stay), stay.told))
            try:
                hold = await self._ownership.open(record, hashed(secret))
            except ValueError as known:  # a visitor's place that another node has made a session of
                raise SeatTaken(session_id) from known
            running = self._begin(hold, config, play)
            running.sit(seat, stack.pop_all())  # before its task runs
        self._queued.pop(session_id, None)
        async with self._at(running, Attached(running, hold.fence.number, secret)) as attached:
            await running.ready()
            yield attached

    @asynccontextmanager
    async def resume(
        self,
        token: str,
        play: Player | None = None,
        last_seq: int | None = None,
        principal: Principal | None = None,
        stay: Stay = Stay(),  # noqa: B008 (a frozen value)
    ) -> AsyncGenerator[Attached]:
        """Another transport of the session that gave this token, in place of the one before, on whichever node that was. Its
        client has all up to `last_seq`; None: it does not say. `principal` None: the token is enough. Raises ResumeRefused,
        SessionLost, Stopped, HeldElsewhere, Superseded, NotAdmitted, HasToWait, StoreDown."""
        known = read_token(token)
        if known is None:
            raise ResumeRefused
        session_id, secret = known
        following = new_secret()
        async with AsyncExitStack() as stack:
            async with self._returns.under_way(session_id, hashed(secret)) as one:
                running, moved = await self._coming_back.back(one, session_id, hashed(following), principal, stay)
                attached = Attached(running, running.hold.fence.number, following)
                await stack.enter_async_context(self._at(running, attached))
            self.watch.resumed(await running.come_back(attached, play, last_seq), moved=moved)
            yield attached

    async def put_down(self, session_id: str, why: Dismissal = Dismissal.MOVED) -> None:
        """It rests in the store, for this node or another one. Nothing happens when it is not here."""
        if (running := self._running.get(session_id)) is not None:
            await running.put_down(why)

    async def drain(self, limit_s: float) -> None:
        """Returns when none is here any more. Each is put down between two turns, or in the middle of one after `limit_s`."""
        leaving = (put_down_between_turns(each, limit_s, self._clock, self._sleep) for each in self._running.values())
        await asyncio.gather(*leaving)

    async def delete(self, session_id: str) -> bool:
        """Nothing is left of it anywhere. False: there was none. Raises StoreDown, and OSError while the file of its snapshot
        cannot be deleted: then the store has it still, so that it can be deleted again."""
        running = self._running.get(session_id)
        if running is not None:
            await running.end()
        return await self.forget(session_id) or running is not None

    async def forget(self, session_id: str) -> bool:
        """Of one that nobody runs. Otherwise as `delete`."""
        await self._snapshots.forget(session_id)
        return await self._ownership.store.end(session_id, None) is not None

    def heed(self, order: Order) -> None:
        """What another node, or an operator, wants of a session here."""
        running = self._running.get(order.session_id)
        match order.verb:
            case "yield":
                if running is not None:
                    self._later(running.put_down(Dismissal.SUPERSEDED, with_seat=True))
                self._later(self._give_way(order.session_id))
            case "close":
                self._later(self._close(order.session_id))
            case _:
                pass

    async def _give_way(self, session_id: str) -> None:
        """To another node that waits for it."""
        await self._returns.give_way(session_id, Superseded())
        if (running := self._running.get(session_id)) is not None:  # whoever came back had it already
            await running.put_down(Dismissal.SUPERSEDED, with_seat=True)
        await self._ownership.let_go(session_id)

    async def _close(self, session_id: str) -> None:
        """Wherever it has got to: somebody may wait here for its seat, or it may be put down meanwhile."""
        await self._returns.give_way(session_id, Stopped())
        if (running := self._running.get(session_id)) is not None:
            await running.end(Dismissal.STOPPED)
        try:
            await self._close_elsewhere(session_id)
        except (StoreDown, OSError) as failure:
            log.error("session %s may still be there and has to be closed again: %s", session_id, failure)

    async def _close_elsewhere(self, session_id: str) -> None:
        """What rests of it is billed and deleted; another node that has it by now is told."""
        store, here = self._ownership.store, self._ownership.node
        left, owner = await store.look(session_id), await store.owner(session_id)
        if left is not None and owner is not None and owner.node != here:
            await store.order(owner.node, Order("close", session_id))
        elif left is not None:
            await store.bill(left.record.tenant, session_id, left.usage, left.record.life_s)
            await self.forget(session_id)
            await store.release(session_id, here)

    @asynccontextmanager
    async def _at(self, running: Running, attached: Attached) -> AsyncGenerator[Attached]:
        self._warm.forget(running.session_id)
        running.take(attached)
        try:
            with logs.about(session=attached.session_id):
                yield attached
        finally:
            await running.leave(attached)
            if running.attached is None and not running.is_ending:
                for session_id in self._warm.keep(running.session_id, running.outgoing.snapshot_bytes):
                    self._later(self._running[session_id].put_down())

    def _begin_again(self, hold: Hold, restored: Restored, moved_at: int) -> Running:
        return self._begin(hold, restored.config, None, restored, moved_at)

    def _begin(
        self, hold: Hold, config: VoiceConfig, play: Player | None, restored: Restored | None = None, moved_at: int = 0
    ) -> Running:
        def spawn(work: Coroutine[None, None, None]) -> asyncio.Task[None]:
            return session.spawn(work)

        playout = None if play is None else play(None, spawn)
        session = VoiceSession(
            self._graph,
            config,
            self._settings,
            self._voices,
            hold.session_id,
            hold.fence.number,
            self._clock,
            self._ids,
            playout,
            restored,
        )
        teller = self._edge(hold.session_id, config, b"" if restored is None else restored.wire)
        teller.begin(hold.fence.number, moved_at)
        unfinished = UnfinishedAnswers() if restored is None else restored.unfinished
        outgoing = Outgoing(session, hold, teller, self._ownership, self._snapshots, unfinished, moved_at)
        results = ClientResults(self._clock, None if restored is None else partial(self._ownership.result, hold.session_id))
        running = Running(session, hold, outgoing, results, self._ownership, self._snapshots, self._billing, self._wall_clock)
        write, life_s = outgoing.journal.write_usage, hold.record.life_s
        self._billing.follow(hold.record.tenant, hold.session_id, session.usage, write, life_s)
        self._running[hold.session_id] = running
        running.start(self._life(hold, running), lambda: self._over(running))
        return running

    def _life(self, hold: Hold, running: Running) -> Life:
        return Life(
            self._limits.lifetime(VOICE, hold.record.tenant),
            hold.life_left_s,
            self._limits.answer_grace_s,
            self._clock,
            self._call_later,
            warn=running.warn,
            unattended=running.unattended,
            over=lambda why: self._expire(running, why),
        )

    def _expire(self, running: Running, why: Expiry) -> None:
        self.watch.expired(why)
        running.expire(why)

    def _later(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(work)
        self._work.add(task)
        task.add_done_callback(self._work.discard)

    def _over(self, running: Running) -> None:
        del self._running[running.session_id]
        self._warm.forget(running.session_id)
        self.sound += running.session.sound
        running.tell_failure()


def _record(session_id: str, config: VoiceConfig, principal: Principal, lifetime: Lifetime, kept_s: float) -> SessionRecord:
    """`kept_s`: how long the store has it without an owner."""
    return SessionRecord(
        session_id=session_id,
        tenant=principal.tenant,
        kind=VOICE,
        model=config.model,
        life_s=lifetime.longest_s,
        grace_s=kept_s,
        principal=principal.key_id,
    )


def _newcomer(record: SessionRecord, principal: Principal, stay: Stay) -> Applicant:
    return Applicant(
        session_id=record.session_id,
        principal=principal,
        kind=record.kind,
        priority=Priority.INTERACTIVE,
        wait_s=stay.longest_s,
        visits=bool(stay.visit),
        life_s=record.life_s,
    )
