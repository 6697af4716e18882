"""What changes a conversation, as it was told: between two snapshots, this is the rest of it."""

from collections.abc import Sequence
from typing import TypeAlias

import msgspec

from sessions.voice import events

Note: TypeAlias = (
    events.Configured
    | events.ItemAdded
    | events.ItemDone
    | events.ItemDeleted
    | events.ItemTruncated
    | events.TranscriptCompleted
    | events.TranscriptFailed
    | events.ResponseCreated
    | events.OutputItemAdded
    | events.PartAdded
    | events.TextDelta
    | events.AudioDone
    | events.TextDone
    | events.PartDone
    | events.OutputItemDone
    | events.ResponseDone
)
"""Not among them: sound, in neither direction, and what is only said."""

_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(Note)


def notes_of(told: Sequence[events.Event]) -> list[Note]:
    return [event for event in told if isinstance(event, Note)]


def encoded(note: Note) -> bytes:
    return _encoder.encode(note)


def decoded(note: bytes) -> Note:
    """Raises msgspec.MsgspecError."""
    return _decoder.decode(note)
