"""What changes a conversation, as it was told: between two snapshots, this is the rest of it."""

from collections.abc import Sequence
from typing import TypeAlias

import msgspec

from sessions.voice import events

Note: TypeAlias = (
    events.Configured
    | events.AudioCommitted
    | events.ItemAdded
    | events.ItemDone
    | events.ItemDeleted
    | events.ItemTruncated
    | events.TranscriptCompleted
    | events.Recognised
    | events.AnswerForgone
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


def encoded(told: Sequence[events.Event]) -> list[bytes]:
    """Of these events those that are notes."""
    return [_encoder.encode(event) for event in told if isinstance(event, Note)]


def decoded(note: bytes) -> Note:
    """Raises msgspec.MsgspecError."""
    return _decoder.decode(note)
