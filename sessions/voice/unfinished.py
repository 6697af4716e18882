"""Answers that have been told to begin and not to end, and how they are ended when who gave them is gone; and what is owed."""

from collections.abc import Iterator

import msgspec

from sessions.voice.events import (
    AudioDone,
    Event,
    ItemDone,
    OutputItemAdded,
    OutputItemDone,
    PartAdded,
    PartDone,
    Response,
    ResponseCreated,
    ResponseDone,
    TextDelta,
    TextDone,
)
from sessions.voice.items import Item, OutputAudio, OutputText
from sessions.voice.owed import Owed


class Unfinished(msgspec.Struct):
    """One answer. `told` names the closing events that have gone out."""

    response: Response
    item: Item | None = None
    has_part: bool = False
    text: str = ""
    told: set[str] = set()

    def closing(self) -> Iterator[Event]:
        """What is still to be told of it, in order: it holds what had been told of its words, and no more."""
        if self.item is not None:
            yield from (event for event in self._item_closing(self.item) if type(event).__name__ not in self.told)
        output = () if self.item is None else (self._closed(self.item),)
        yield ResponseDone(msgspec.structs.replace(self.response, status="cancelled", output=output))

    def _item_closing(self, item: Item) -> Iterator[Event]:
        response_id, spoken, closed = self.response.id, self.response.modality == "audio", self._closed(item)
        if self.has_part:
            if spoken:
                yield AudioDone(response_id, item.id, stopped=True)
            yield TextDone(response_id, item.id, self.text, spoken)
            yield PartDone(response_id, item.id, self._part())
        if self.response.conversation == "auto":
            yield ItemDone(closed, None)
        yield OutputItemDone(response_id, closed)

    def _closed(self, item: Item) -> Item:
        return msgspec.structs.replace(item, status="incomplete", parts=(self._part(),) if self.has_part else ())

    def _part(self) -> OutputAudio | OutputText:
        return OutputAudio(self.text, 0) if self.response.modality == "audio" else OutputText(self.text)


class UnfinishedAnswers:
    """Of one session, by what has been told. `spoken`: id of the newest answer with sound, which may outlast its end. `owed` is
    what has yet to begin."""

    def __init__(self, answers: tuple[Unfinished, ...] = (), spoken: str | None = None, owed: Owed | None = None) -> None:
        self._answers = {answer.response.id: answer for answer in answers}
        self.spoken = spoken
        self.owed = owed or Owed()

    @property
    def answers(self) -> tuple[Unfinished, ...]:
        return tuple(self._answers.values())

    def told(self, event: Event) -> None:
        self.owed.told(event)
        match event:
            case ResponseCreated(response):
                self._answers[response.id] = Unfinished(response)
                self.spoken = response.id if response.modality == "audio" else self.spoken
            case ResponseDone(response):
                self._answers.pop(response.id, None)
            case OutputItemAdded(response_id, item) if response_id in self._answers:
                self._answers[response_id].item = item
            case PartAdded(response_id) if response_id in self._answers:
                self._answers[response_id].has_part = True
            case TextDelta(response_id, _, text) if response_id in self._answers:
                self._answers[response_id].text += text
            case AudioDone(response_id) | TextDone(response_id) | PartDone(response_id) | OutputItemDone(response_id):
                self._closing(response_id, event)
            case ItemDone(item):
                for answer in self._answers.values():
                    if answer.item is not None and answer.item.id == item.id:
                        answer.told.add("ItemDone")
            case _:
                pass

    def _closing(self, response_id: str, event: Event) -> None:
        if response_id in self._answers:
            self._answers[response_id].told.add(type(event).__name__)
