"""What a session says: numbered, written down, and then sent by whichever transport it has; or only written down."""

import logging
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Iterable, Sequence

from sessions.retention.journal import Journal, Said
from sessions.retention.ownership import Hold, Ownership
from sessions.retention.sealing import Unreadable
from sessions.retention.snapshots import Snapshots
from sessions.store.interface import Fenced, StoreDown, UnknownSession
from sessions.store.records import Entry
from sessions.store.session_limits import MOST_RESULTS
from sessions.voice.events import AudioDelta, Event, Opened, Overtaken, Reopened, ResponseDone, Resumed
from sessions.voice.notes import encoded
from sessions.voice.resync import told
from sessions.voice.session import VoiceSession
from sessions.voice.snapshot import pack
from sessions.voice.teller import Bearer, Teller
from sessions.voice.unfinished import UnfinishedAnswers

log = logging.getLogger(__name__)

MAX_UNSENT = 256
"""Events that a snapshot of the conversation does not tell, kept for a client that comes back without saying what it has.
Overflow policy `latest`."""


class Outgoing:
    """`moved_at`: where the numbers of another node ended; 0: there was none."""

    def __init__(
        self,
        session: VoiceSession,
        hold: Hold,
        teller: Teller,
        ownership: Ownership,
        snapshots: Snapshots,
        unfinished: UnfinishedAnswers,
        moved_at: int,
    ) -> None:
        self.teller = teller
        self.journal = Journal(hold, ownership.write, self._snapshot, session.usage, promised=moved_at)
        self.snapshot_bytes = 0
        """Of the newest: what the session holds in memory is of that order."""
        self._session = session
        self._hold = hold
        self._ownership = ownership
        self._snapshots = snapshots
        self._unfinished = unfinished
        self._moved_at = moved_at
        self._greeted_at = 0
        """The number of what the first transport was greeted with, which the journal has not; 0: none."""
        self._unsent: OrderedDict[int, Entry] = OrderedDict()
        self._answers: deque[tuple[int, str, bytes]] = deque(maxlen=MOST_RESULTS)
        """After how many events, to which event id, and what. Overflow policy `latest`, as in the store."""

    def note(self, group: Sequence[Event], bearer: Bearer | None) -> tuple[Said, ...]:
        """Never waits, so that whoever has taken events from the session cannot lose them."""
        every: list[Said] = []
        changes = [event.event if isinstance(event, Overtaken) else event for event in group]
        for event in group:
            if isinstance(event, Overtaken):
                self._unfinished.told(event.event)
                continue
            said = self.teller.write(event, bearer)
            every += said
            self._unfinished.told(event)
            if isinstance(event, Opened):
                self._greeted_at = max((each.seq for each in said if each.kept is None), default=0)
            if isinstance(event, Reopened):
                self._forget_unsent(entry.seq for entry in event.untold)  # they are told under new numbers
            if not told(event):
                self._keep_unsent(said)
        self.journal.note(every, encoded(changes))
        self._write_answers()
        if any(isinstance(event, ResponseDone) for event in group):
            self.journal.keep_snapshot()
        return tuple(every)

    def answered(self, event_id: str, result: bytes) -> None:
        """What the client's event was answered. Written when all that it has brought about is: another node would take for done
        what it knows nothing of."""
        self._answers.append((self._session.emitted, event_id, result))
        self._write_answers()

    def sent(self, said: Said) -> None:
        self._unsent.pop(said.seq, None)

    async def resumed(self, last_seq: int) -> Resumed | None:
        """For a client that has all up to `last_seq`; None: not all that it has missed is there, so it needs to be told anew."""
        try:
            await self.journal.settled()
            missed = await self._ownership.missed(self._hold, last_seq)
        except (StoreDown, Fenced, UnknownSession, Unreadable) as failure:
            log.warning("session %s: what its client has missed is not known: %s", self._hold.session_id, failure)
            return None
        if not missed.complete or last_seq > self.teller.seq:
            return None
        self._forget_unsent(seq for seq in tuple(self._unsent) if seq <= last_seq)
        self.journal.acknowledge(last_seq)
        sounds = None if last_seq < self._moved_at else self.teller.seq - max(last_seq, self._greeted_at) - len(missed.events)
        return Resumed(self._session.config, last_seq, missed.events, sounds)

    def untold(self) -> tuple[Entry, ...]:
        """What nobody has been sent, and a snapshot does not tell. It stays untold until who is to hear it comes for it."""
        return tuple(self._unsent.values())

    async def write_down(self, groups: AsyncIterator[tuple[Event, ...]]) -> None:
        """Nobody is there: until somebody is, or the session ends. What sounds is dropped."""
        async for group in groups:
            if not isinstance(group[0], AudioDelta):
                self.note(group, None)

    async def rest(self) -> None:
        """A snapshot of all that was said. Raises Fenced, StoreDown."""
        self.journal.keep_snapshot()
        await self.journal.settled()

    def _write_answers(self) -> None:
        while self._answers and self._answers[0][0] <= self._session.taken:
            _, event_id, result = self._answers.popleft()
            self.journal.answered(event_id, result)

    def _keep_unsent(self, said: Sequence[Said]) -> None:
        for each in said:
            if each.kept is not None:
                self._unsent[each.seq] = Entry(each.seq, each.kept)
        while len(self._unsent) > MAX_UNSENT:
            self._unsent.popitem(last=False)

    def _forget_unsent(self, numbers: Iterable[int]) -> None:
        for seq in numbers:
            self._unsent.pop(seq, None)

    async def _snapshot(self) -> bytes | None:
        """None: the directory does not take it; what is in the store goes on being added to."""
        snapshot = self._session.snapshot(self._unfinished, self.teller.state())
        try:
            kept = await self._snapshots.keep(self._hold.session_id, pack(snapshot), self._hold.fence.number)
        except OSError as failure:
            log.error("session %s: its snapshot cannot be written: %s", self._hold.session_id, failure)
            return None
        self.snapshot_bytes = len(kept)
        return kept
