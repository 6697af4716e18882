"""A conversation as it was told, from its snapshot and the notes since."""

from collections.abc import Collection, Mapping

import msgspec

from sessions.retention.ownership import Hold, Ownership
from sessions.retention.sealing import Unreadable
from sessions.retention.snapshots import NotRestorable, Snapshots
from sessions.voice.conversation import Entry, text_of
from sessions.voice.events import (
    Configured,
    Event,
    ItemAdded,
    ItemDeleted,
    ItemDone,
    ItemTruncated,
    Recognised,
    ResponseCreated,
    TranscriptCompleted,
    TranscriptFailed,
)
from sessions.voice.items import InputAudio, Item
from sessions.voice.notes import Note, decoded
from sessions.voice.snapshot import VoiceSnapshot, unpack
from sessions.voice.unfinished import UnfinishedAnswers

LOST = "the server that was listening is gone"


class Due(msgspec.Struct, frozen=True):
    """An answer that the user was to get. `words_lost`: nobody knows what it is to answer."""

    words_lost: bool


async def restore(hold: Hold, ownership: Ownership, snapshots: Snapshots, voices: Collection[str]) -> "Restored":
    """`voices` speak here, the default one first. Raises NotRestorable, UnknownSession, Fenced, StoreDown."""
    try:
        kept = await ownership.kept(hold)
    except Unreadable as sealed:
        raise NotRestorable(str(sealed)) from sealed
    if kept.snapshot is None:
        raise NotRestorable(f"session {hold.session_id} has no snapshot yet")
    snapshot = unpack(await snapshots.read(hold.session_id, kept.snapshot))
    try:
        notes = [decoded(note) for note in kept.inputs]
    except msgspec.MsgspecError as broken:
        raise NotRestorable(f"the notes of {hold.session_id} are broken: {broken}") from broken
    return Restored(snapshot, notes, await ownership.usage(hold), voices)


class Restored:
    """`snapshot` with `notes` added: its `config`, `entries`, `epoch`, `wire`, and what is `unfinished`; and `events`, which tell
    what has ended with the node before: answers that nobody gives any more, speech whose words will never be known, and a voice
    that is not among those here: the first of these speaks from now on. `due` is what begins when somebody is there to hear it;
    `usage` what was used there."""

    def __init__(self, snapshot: VoiceSnapshot, notes: list[Note], usage: Mapping[str, float], voices: Collection[str]) -> None:
        self.config = snapshot.config
        self.epoch = snapshot.epoch
        self.wire = snapshot.wire
        self.usage = usage
        self.entries = list(snapshot.entries)
        self.events: list[Event] = []
        self.unfinished = UnfinishedAnswers(snapshot.unfinished, snapshot.spoken, snapshot.owed)
        for note in notes:
            self.unfinished.told(note)
            self._apply(note)
        for answer in self.unfinished.answers:
            for event in answer.closing():
                self._end(event)
        self.entries = [entry for entry in self.entries if entry.written.status != "in_progress"]
        self._give_up_words()
        self._find_voice(voices)
        self.due = self._due()

    def _end(self, event: Event) -> None:
        if isinstance(event, ItemDone):
            event = ItemDone(event.item, self._before(event.item.id))
            self._done(event.item)
        self.events.append(event)

    def _apply(self, note: Note) -> None:
        match note:
            case Configured(config):
                self.config = config
            case ItemAdded(item, previous):
                self._add(item, previous)
            case ItemDone(item):
                self._done(item)
            case ItemDeleted(item_id):
                self.entries = [entry for entry in self.entries if entry.written.id != item_id]
            case ItemTruncated(item_id, _, heard_ms):
                if (entry := self._find(item_id)) is not None:
                    entry.heard_ms, entry.source = heard_ms, "truncated"
            case TranscriptCompleted(item_id, _, transcript, seconds) | Recognised(item_id, transcript, seconds):
                self._heard(item_id, transcript, round(seconds * 1000))
            case TranscriptFailed(item_id):
                self._heard(item_id, "", 0)
            case ResponseCreated():
                self.epoch += 1
            case _:
                pass

    def _add(self, item: Item, previous: str | None) -> None:
        if self._find(item.id) is not None:
            return
        places = [place for place, entry in enumerate(self.entries) if entry.written.id == previous]
        self.entries.insert(places[0] + 1 if places else 0 if previous is None else len(self.entries), Entry(item))

    def _done(self, item: Item) -> None:
        if (entry := self._find(item.id)) is not None:
            entry.written = item

    def _heard(self, item_id: str, transcript: str, duration_ms: int) -> None:
        entry = self._find(item_id)
        if entry is not None:
            entry.written = msgspec.structs.replace(entry.written, parts=(InputAudio(transcript, duration_ms),))

    def _give_up_words(self) -> None:
        for entry in self.entries:
            if any(isinstance(part, InputAudio) and part.transcript is None for part in entry.written.parts):
                self._heard(entry.written.id, "", 0)
                self.events.append(TranscriptFailed(entry.written.id, 0, LOST))

    def _due(self) -> Due | None:
        turns = [entry.written for entry in self.entries if entry.written.id in self.unfinished.owed.turns]
        return Due(words_lost=not text_of(turns[-1])) if turns else None

    def _find_voice(self, voices: Collection[str]) -> None:
        if self.config.voice not in voices and voices:
            self.config = msgspec.structs.replace(self.config, voice=next(iter(voices)))
            self.events.append(Configured(self.config))

    def _find(self, item_id: str) -> Entry | None:
        return next((entry for entry in self.entries if entry.written.id == item_id), None)

    def _before(self, item_id: str) -> str | None:
        ids = [entry.written.id for entry in self.entries]
        place = ids.index(item_id) if item_id in ids else 0
        return ids[place - 1] if place else None
