"""Whether an answer is owed that has not begun, by what has been told."""

import msgspec

from sessions.voice.events import (
    AnswerForgone,
    AudioCommitted,
    Event,
    ItemDeleted,
    Recognised,
    ResponseCreated,
    TranscriptCompleted,
)


class Owed(msgspec.Struct):
    """`turns`: items of the user's, oldest first, which one answer is to follow."""

    turns: list[str] = []

    def told(self, event: Event) -> None:
        match event:
            case AudioCommitted(item_id, _, answer_follows=True):
                self.turns.append(item_id)
            case AudioCommitted() | AnswerForgone():
                self.turns.clear()
            case ResponseCreated(response) if response.conversation == "auto":
                self.turns.clear()
            case TranscriptCompleted(item_id, _, "") | Recognised(item_id, "") | ItemDeleted(item_id):
                self.turns = [each for each in self.turns if each != item_id]
            case _:
                pass
