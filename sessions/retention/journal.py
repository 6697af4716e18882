"""What a session has said, durable in the store before anybody hears it; with it what another node needs to go on."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import msgspec

from sessions.retention.ownership import Hold
from sessions.states import State
from sessions.store.interface import Fenced, StoreDown
from sessions.store.records import Entry, Write
from sessions.store.session_limits import LONGEST_EVENT_ID, InputsFull
from sessions.usage import UsageMeter

MAX_WAITING = 1000
"""Events that the store has not taken. While it is down nothing waits until there are so many; overflow policy then: block."""
PROMISED = 512
"""Numbers of sound that may go out before the next word to the store: ten seconds of it."""
RETRY_S = 0.5


class Said(msgspec.Struct, frozen=True):
    """One event as it goes out. `seq` is its place in all that the session says. `kept` is what the journal holds of it; None:
    nothing, as it is sound, or a greeting that belongs to one transport."""

    seq: int
    text: bytes
    kept: bytes | None


class Journal:
    """One session's. `note` never waits; `run`, a task of the session, writes what has been noted, all at once: a group for each
    tick of the loop, or for each answer of the store. `write` is Ownership's; `snapshot` takes the session as it is when it is
    called, and gives what the store is to have of it; None: it cannot be kept now."""

    def __init__(
        self,
        hold: Hold,
        write: Callable[[Hold, Write], Awaitable[None]],
        snapshot: Callable[[], Awaitable[bytes | None]],
        usage: UsageMeter,
        promised: int = 0,
    ) -> None:
        self._hold = hold
        hold.replaced = self.keep_snapshot
        self._usage = usage
        self._write = write
        self._snapshot = snapshot
        self._events: list[Entry] = []
        self._notes: list[bytes] = []
        self._results: dict[str, bytes] = {}
        self._state: State | None = None
        self._acknowledged = 0
        self._promised = promised
        self._wants_snapshot = False
        self._noted = self._written = self._number = 0
        self._news = asyncio.Event()
        self._progress = asyncio.Event()
        self._is_down = False

    def note(self, said: Sequence[Said], notes: Sequence[bytes] = ()) -> None:
        """`notes`: what these events change of the session, for whoever restores it."""
        self._events += [Entry(each.seq, each.kept) for each in said if each.kept is not None]
        self._notes += notes
        newest = max((each.seq for each in said), default=0)
        if self._events or self._notes or newest > self._promised:
            self._promised = max(self._promised, newest + PROMISED if newest > self._promised else 0)
            self._changed()

    def answered(self, event_id: str, result: bytes) -> None:
        """What the client's event of this id was answered. Written with what comes next."""
        if len(event_id) <= LONGEST_EVENT_ID:
            self._results[event_id] = result

    def acknowledge(self, seq: int) -> None:
        """The client has all up to this number. Written with what comes next."""
        self._acknowledged = max(self._acknowledged, seq)

    def enter(self, state: State) -> None:
        self._state = state
        self._changed()

    def keep_snapshot(self) -> None:
        """A turn is over: a snapshot takes the place of the notes until now."""
        self._wants_snapshot = True
        self._changed()

    async def durable(self) -> None:
        """Returns when what has been noted until now may go out: the store has it, or is down while the lease holds. Raises
        Fenced."""
        noted = self._noted
        while self._written < noted and not (self._is_down and len(self._events) < MAX_WAITING):
            await self._next_progress()
        if self._hold.muted:
            await self._hold.audible()

    async def settled(self) -> None:
        """Returns when the store has all that has been noted. Raises Fenced, StoreDown."""
        noted = self._noted
        while self._written < noted:
            if self._is_down:
                raise StoreDown("what the session has said is not written yet", RETRY_S)
            await self._next_progress()

    async def write_usage(self) -> None:
        """Returns when the store has what was used until now. Raises Fenced, StoreDown."""
        self._changed()
        await self.settled()

    async def run(self) -> None:
        """Until it is cancelled. Raises Fenced when the session is somebody else's."""
        try:
            while True:
                await self._news.wait()
                self._news.clear()
                await self._flush()
        finally:
            self._tell_progress()

    async def _flush(self) -> None:
        noted, write = self._noted, await self._taken()
        while not await self._tried(write):
            self._is_down = True
            self._tell_progress()
            await self._hold.contact()
        self._is_down = False
        self._written = noted
        self._usage.written = write.usage
        self._tell_progress()

    async def _tried(self, write: Write) -> bool:
        try:
            try:
                await self._write(self._hold, write)
            except InputsFull:
                await self._write(self._hold, await self._shortened(write))
        except StoreDown:
            return False
        return True

    async def _shortened(self, write: Write) -> Write:
        """A snapshot in place of its inputs, and of what has been noted since: it has that, too."""
        newer = len(self._notes)
        snapshot = await self._snapshot()
        if snapshot is not None:
            del self._notes[:newer]
        return msgspec.structs.replace(write, inputs=(), snapshot=snapshot)

    async def _taken(self) -> Write:
        events, self._events = tuple(self._events), []
        notes, self._notes = self._notes, []
        results, self._results = self._results, {}
        state, self._state = self._state, None
        wants_snapshot, self._wants_snapshot = self._wants_snapshot, False
        self._number += 1
        number, promised, acknowledged, usage = self._number, self._promised, self._acknowledged, self._usage.totals
        snapshot = await self._snapshot() if wants_snapshot else None
        return Write(
            number=number,
            events=events,
            promised=promised,
            inputs=() if snapshot is not None else tuple(notes),
            snapshot=snapshot,
            results=results,
            acknowledged=acknowledged,
            usage=usage,
            state=state,
        )

    def _changed(self) -> None:
        self._noted += 1
        self._news.set()

    def _tell_progress(self) -> None:
        progress, self._progress = self._progress, asyncio.Event()
        progress.set()

    async def _next_progress(self) -> None:
        if self._hold.lost.is_set():
            raise Fenced(self._hold.session_id, self._hold.fence)
        await self._progress.wait()
