"""The item that an answer writes and speaks, and the events about it."""

import asyncio

import msgspec

from engines.payloads import Payload
from sessions.voice.audio_buffer import SAMPLES_PER_MS
from sessions.voice.config import SoundFormat
from sessions.voice.conversation import Conversation
from sessions.voice.events import (
    AudioDelta,
    AudioDone,
    ItemAdded,
    ItemDone,
    OutputItemAdded,
    OutputItemDone,
    PartAdded,
    PartDone,
    TextDelta,
    TextDone,
)
from sessions.voice.items import Item, ItemStatus, OutputAudio, OutputText
from sessions.voice.spoken import Spoken
from sessions.voice.state import VoiceState


class OutputItem:
    """`conversation` None: the answer is out of band and leaves no item behind. `sound` None: it is only written."""

    def __init__(self, state: VoiceState, conversation: Conversation | None, response_id: str, sound: SoundFormat | None) -> None:
        self._emit = state.emit
        self._spawn = state.spawn
        self._conversation = conversation
        self._response_id = response_id
        self._is_spoken = sound is not None
        self._format: SoundFormat = sound or "pcm"
        self._text = ""
        self._spoken = Spoken(state.settings.characters_per_second)
        self._item = Item(id=state.ids("item"), role="assistant", status="in_progress", parts=())
        self._opening: asyncio.Task[None] | None = None

    @property
    def audio_ms(self) -> float:
        return self._spoken.duration_ms

    @property
    def heard_ms(self) -> int:
        """Of a closed item what was heard, as far as that is known; else all that there is."""
        part = self._item.parts[0] if self._item.parts else None
        return part.duration_ms if isinstance(part, OutputAudio) else round(self.audio_ms)

    def said(self, start_ms: float, end_ms: float) -> str:
        """The words in this stretch of its sound."""
        return self._spoken.between(self._text, start_ms, end_ms)

    def output(self) -> tuple[Item, ...]:
        """What a response lists as its output."""
        return (self._item,) if self._opening is not None else ()

    def so_far(self) -> Item:
        """With what has been written."""
        return self._item if self._item.parts else msgspec.structs.replace(self._item, parts=(self._part(),))

    async def open(self) -> None:
        """Whoever stops the answer meanwhile does not stop this: what is in the conversation is announced whole."""
        self._opening = self._spawn(self._announce())
        await asyncio.wait({self._opening})

    async def _announce(self) -> None:
        previous = None
        if self._conversation is not None:
            previous = self._conversation.add(self._item, spoken=self._spoken if self._is_spoken else None)
        added = () if self._conversation is None else (ItemAdded(self._item, previous),)
        part = PartAdded(self._response_id, self._item.id, self._part())
        await self._emit(OutputItemAdded(self._response_id, self._item), *added, part)

    async def write(self, text: str) -> None:
        self._text += text
        await self._emit(TextDelta(self._response_id, self._item.id, text, self._is_spoken))

    async def sound(self, payload: Payload) -> None:
        """One chunk of a speaking output: array `pcm`, which may be empty, attributes `clause`, `written_end`, `clause_final`."""
        pcm, place = bytes(payload.arrays["pcm"].data), payload.attributes
        begins_ms, duration_ms = self._spoken.duration_ms, len(pcm) / 2 / SAMPLES_PER_MS
        self._spoken.add(int(place["clause"]), int(place["written_end"]), duration_ms, bool(place["clause_final"]))
        if pcm:
            aside = self._conversation is None
            await self._emit(AudioDelta(self._response_id, self._item.id, pcm, begins_ms, self._format, aside))

    async def close(self, status: ItemStatus, *, stopped: bool) -> None:
        if self._opening is None:
            return
        await asyncio.wait({self._opening})
        if status == "incomplete" and self._conversation is not None:
            self._conversation.limit(self._item.id, self._spoken.duration_ms)
        written = msgspec.structs.replace(self._item, status=status, parts=(self._part(),))
        self._item = self._conversation.replace(written) if self._conversation is not None else written
        if self._is_spoken:
            await self._emit(AudioDone(self._response_id, self._item.id, stopped))
        await self._emit(TextDone(self._response_id, self._item.id, self._text, self._is_spoken))
        await self._emit(PartDone(self._response_id, self._item.id, self._part()))
        if self._conversation is not None:
            await self._emit(ItemDone(self._item, self._conversation.before(self._item.id)))
        await self._emit(OutputItemDone(self._response_id, self._item))

    def _part(self) -> OutputText | OutputAudio:
        if self._is_spoken:
            return OutputAudio(self._text, round(self._spoken.duration_ms))
        return OutputText(self._text)
