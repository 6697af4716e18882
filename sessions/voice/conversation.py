"""The items of a conversation in their order."""

from collections import deque
from collections.abc import Sequence

import msgspec

from sessions.voice.commands import CommandRefused
from sessions.voice.items import InputAudio, InputText, Item, OutputAudio, OutputText
from sessions.voice.playout import Source
from sessions.voice.spoken import Spoken

RECKONED: tuple[Source, ...] = ("estimated", "acknowledged")
"""Sources of a cut that the client may correct: what was heard since its last word is not known."""


class Sound(msgspec.Struct, frozen=True):
    """Of answers: how much was made, and how much was heard as far as that is known."""

    made_ms: float = 0.0
    heard_ms: float = 0.0

    def __add__(self, other: "Sound") -> "Sound":
        return Sound(self.made_ms + other.made_ms, self.heard_ms + other.heard_ms)


class Entry(msgspec.Struct):
    """An item as it was `written`, and what the session knows about it.

    Of its sound the client gets `given_ms` at most, and has heard `heard_ms`, known from `source`; None: all. `forgotten` entries
    have left the model's context.
    """

    written: Item
    spoken: Spoken | None = None
    given_ms: float | None = None
    heard_ms: int | None = None
    source: Source | None = None
    forgotten: bool = False

    @property
    def item(self) -> Item:
        """Cut to what was heard. While it is being spoken it is shown as it is."""
        part = self.written.parts[0] if self.written.parts else None
        whole = self.heard_ms is None and self.given_ms is None
        if whole or self.spoken is None or not isinstance(part, OutputAudio) or self.written.status == "in_progress":
            return self.written
        heard_ms = round(self.sound.heard_ms)
        return msgspec.structs.replace(self.written, parts=(OutputAudio(self.spoken.heard(part.transcript, heard_ms), heard_ms),))

    @property
    def sound(self) -> Sound:
        made_ms = self.spoken.duration_ms if self.spoken is not None else 0.0
        return Sound(made_ms, self.sound_ms if self.heard_ms is None else min(self.heard_ms, self.sound_ms))

    @property
    def sound_ms(self) -> int:
        """As much of it as there is to hear, so far."""
        made_ms = self.spoken.duration_ms if self.spoken is not None else 0.0
        return round(made_ms if self.given_ms is None else min(self.given_ms, made_ms))


class Conversation:
    """Bounded; overflow policy `latest`: the oldest item leaves for good."""

    def __init__(self, maximum_items: int) -> None:
        self._maximum_items = maximum_items
        self._entries: list[Entry] = []
        self._gone = Sound()
        self._announced = ""
        self._deleted_early: deque[str] = deque(maxlen=maximum_items)

    @property
    def entries(self) -> Sequence[Entry]:
        return self._entries

    @property
    def sound(self) -> Sound:
        """Of all items that there have been."""
        return sum((entry.sound for entry in self._entries), start=self._gone)

    def restore(self, entries: Sequence[Entry]) -> None:
        """Of a conversation that goes on."""
        self._entries = list(entries)

    def announce(self, item_id: str) -> None:
        """The client knows the id of an item to come. There is one at a time, as the user says one thing at a time."""
        self._announced = item_id

    def create(self, item: Item, previous_item_id: str | None) -> str | None:
        """As `add`, for the client: it may not take the id of an item that is announced, or deleted before it was complete."""
        if item.id == self._announced or item.id in self._deleted_early:
            raise CommandRefused("item_create_duplicate_id", f"item.id: {item.id!r} is the id of another item", "item.id")
        return self.add(item, previous_item_id)

    def add(self, item: Item, previous_item_id: str | None = None, spoken: Spoken | None = None) -> str | None:
        """Returns the id of the item before it. Raises CommandRefused for a doubled id and an unknown predecessor."""
        if self._find(item.id) is not None:
            raise CommandRefused("item_create_duplicate_id", f"item.id: {item.id!r} is already in the conversation", "item.id")
        place = self._place_after(previous_item_id)
        self._entries.insert(place, Entry(item, spoken))
        if len(self._entries) > self._maximum_items:
            self._gone += self._entries.pop(0).sound
        return self.before(item.id)

    def before(self, item_id: str) -> str | None:
        place = self._find(item_id)
        return self._entries[place - 1].item.id if place else None

    def get(self, item_id: str) -> Entry | None:
        place = self._find(item_id)
        return None if place is None else self._entries[place]

    def retrieve(self, item_id: str) -> Item:
        return self._named(item_id, "item_retrieve_invalid_item_id").item

    def delete(self, item_id: str) -> None:
        entry = self._named(item_id, "item_delete_invalid_item_id")
        self._entries.remove(entry)
        self._gone += entry.sound
        if not is_complete(entry.written):
            self._deleted_early.append(item_id)

    def replace(self, item: Item) -> Item:
        """The item's new state; cut to what was heard when its playback has been stopped. A deleted item stays away."""
        entry = self.get(item.id)
        if entry is None:
            return item
        entry.written = item
        return entry.item

    def limit(self, item_id: str, given_ms: float) -> None:
        """No more of this item's sound than that will ever reach the client."""
        entry = self.get(item_id)
        if entry is not None and entry.spoken is not None:
            entry.given_ms = given_ms if entry.given_ms is None else min(given_ms, entry.given_ms)

    def cut(self, item_id: str, heard_ms: int, source: Source) -> int:
        """Keep of a spoken item what was heard; returns how much that is by all cuts of it.

        An item still being spoken is cut when it ends. A second cut can only take more away; but one that was reckoned gives way,
        both ways, to the client's word of where it stopped. A deleted item stays away.
        """
        entry = self.get(item_id)
        if entry is None or entry.spoken is None:
            return 0
        heard_ms = min(max(heard_ms, 0), entry.sound_ms)
        if source == "truncated" and entry.source in RECKONED:
            entry.heard_ms = None
        if entry.heard_ms is None or heard_ms < entry.heard_ms:
            entry.heard_ms, entry.source = heard_ms, source
        return min(entry.heard_ms, entry.sound_ms)

    def correct(self, item_id: str, heard_ms: int) -> None:
        """The client has told how far it had played. It counts where a cut was reckoned, and nowhere else."""
        entry = self.get(item_id)
        if entry is not None and entry.source in RECKONED:
            entry.heard_ms = None
            self.cut(item_id, heard_ms, "acknowledged")

    def truncate(self, item_id: str, content_index: int, audio_end_ms: int) -> int:
        """The client has stopped playing there; returns how much of it is kept. Raises CommandRefused."""
        entry = self._named(item_id, "item_truncate_invalid_item_id")
        if entry.item.role != "assistant":
            raise CommandRefused(
                "item_truncate_invalid_role", f"item_id: expected an assistant item, got one of the {entry.item.role}", "item_id"
            )
        if content_index != 0:
            raise CommandRefused(
                "item_truncate_invalid_index", f"content_index: expected 0, got {content_index}", "content_index"
            )
        if entry.spoken is None:
            message = f"item_id: expected an item that was spoken here, got {item_id!r} without sound; delete it instead"
            raise CommandRefused("item_truncate_no_audio", message, "item_id")
        return self.cut(item_id, audio_end_ms, "truncated")

    def _find(self, item_id: str) -> int | None:
        for place, entry in enumerate(self._entries):
            if entry.item.id == item_id:
                return place
        return None

    def _named(self, item_id: str, code: str) -> Entry:
        entry = self.get(item_id)
        if entry is None:
            raise CommandRefused(code, f"item_id: expected an item of the conversation, got {item_id!r}", "item_id")
        return entry

    def _place_after(self, previous_item_id: str | None) -> int:
        if previous_item_id is None:
            return len(self._entries)
        if previous_item_id == "root":
            return 0
        place = self._find(previous_item_id)
        if place is None:
            message = f"previous_item_id: expected an item of the conversation, 'root' or null, got {previous_item_id!r}"
            raise CommandRefused("item_create_invalid_previous_item_id", message, "previous_item_id")
        return place + 1


def is_complete(item: Item) -> bool:
    """Nothing more is going to be written of it."""
    unheard = any(isinstance(part, InputAudio) and part.transcript is None for part in item.parts)
    return item.status != "in_progress" and not unheard


def text_of(item: Item) -> str:
    """What the language model reads of it."""
    return "\n".join(filter(None, (_text(part) for part in item.parts)))


def _text(part: InputText | InputAudio | OutputText | OutputAudio) -> str:
    if isinstance(part, InputText | OutputText):
        return part.text
    return part.transcript or ""
