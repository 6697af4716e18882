"""What the server says on the wire, in the GA shape. One record per event; fields of ours are marked as extra."""

from typing import TypeAlias

import msgspec
from msgspec import UNSET, UnsetType

from realtime.errors import ErrorBody

Object: TypeAlias = dict[str, object]


class ServerEvent(msgspec.Struct, frozen=True, tag_field="type", kw_only=True):
    event_id: str = ""


class Resume(msgspec.Struct, frozen=True):
    """How to come back when the connection is lost: `?resume=<token>&last_seq=<n>`. `seq` is the number of this event,
    `expires_at` (Unix seconds) until when the session would be held if the connection were lost now.

    To who has come back: `state_restored` says that the conversation is as it was; `events_replayed` how many of the next events
    are those that were missed; `frames_lost` how many events of sound were, which do not come again (null: not known).
    """

    token: str
    seq: int
    expires_at: int
    state_restored: bool | UnsetType = UNSET
    events_replayed: int | UnsetType = UNSET
    frames_lost: int | UnsetType | None = UNSET


class Resync(msgspec.Struct, frozen=True):
    """The conversation as it is, for a client that has come back: its newest items, and the answer that goes on."""

    items: tuple[Object, ...]
    response: str | None


class SessionCreated(ServerEvent, frozen=True, kw_only=True, tag="session.created"):
    """`resume` and `resync` are extra; the latter stands only where a session goes on."""

    session: Object
    resume: Resume
    resync: Resync | UnsetType = UNSET


class SessionQueued(ServerEvent, frozen=True, kw_only=True, tag="session.queued"):
    """One of ours, told only to whoever asks for it (`?queue=events`), before there is a session: its place in the waiting room,
    from 1, and how long it may take; null: nobody knows yet."""

    position: int
    estimate_s: float | None


class SessionUpdated(ServerEvent, frozen=True, kw_only=True, tag="session.updated"):
    """`resume` and `expires_at` are extra; the latter (Unix seconds) warns that the session ends then, whatever anybody does."""

    session: Object
    resume: Resume | UnsetType = UNSET
    expires_at: int | UnsetType = UNSET


class Error(ServerEvent, frozen=True, kw_only=True, tag="error"):
    error: ErrorBody


class SpeechStarted(ServerEvent, frozen=True, kw_only=True, tag="input_audio_buffer.speech_started"):
    item_id: str
    audio_start_ms: int


class SpeechStopped(ServerEvent, frozen=True, kw_only=True, tag="input_audio_buffer.speech_stopped"):
    item_id: str
    audio_end_ms: int


class TimeoutTriggered(ServerEvent, frozen=True, kw_only=True, tag="input_audio_buffer.timeout_triggered"):
    item_id: str
    audio_start_ms: int
    audio_end_ms: int


class Committed(ServerEvent, frozen=True, kw_only=True, tag="input_audio_buffer.committed"):
    item_id: str
    previous_item_id: str | None


class Cleared(ServerEvent, frozen=True, kw_only=True, tag="input_audio_buffer.cleared"):
    pass


class ItemAdded(ServerEvent, frozen=True, kw_only=True, tag="conversation.item.added"):
    item: Object
    previous_item_id: str | None


class ItemDone(ServerEvent, frozen=True, kw_only=True, tag="conversation.item.done"):
    item: Object
    previous_item_id: str | None


class ItemDeleted(ServerEvent, frozen=True, kw_only=True, tag="conversation.item.deleted"):
    item_id: str


class ItemRetrieved(ServerEvent, frozen=True, kw_only=True, tag="conversation.item.retrieved"):
    item: Object


class ItemTruncated(ServerEvent, frozen=True, kw_only=True, tag="conversation.item.truncated"):
    item_id: str
    content_index: int
    audio_end_ms: int


class TranscriptionCompleted(ServerEvent, frozen=True, kw_only=True, tag="conversation.item.input_audio_transcription.completed"):
    item_id: str
    content_index: int
    transcript: str
    usage: Object


class TranscriptionFailed(ServerEvent, frozen=True, kw_only=True, tag="conversation.item.input_audio_transcription.failed"):
    item_id: str
    content_index: int
    error: ErrorBody


class ResponseCreated(ServerEvent, frozen=True, kw_only=True, tag="response.created"):
    response: Object


class RateLimitsUpdated(ServerEvent, frozen=True, kw_only=True, tag="rate_limits.updated"):
    """Empty: a server of one's own counts no requests or tokens."""

    rate_limits: tuple[Object, ...] = ()


class OutputItemAdded(ServerEvent, frozen=True, kw_only=True, tag="response.output_item.added"):
    response_id: str
    item: Object
    output_index: int = 0


class OutputItemDone(ServerEvent, frozen=True, kw_only=True, tag="response.output_item.done"):
    response_id: str
    item: Object
    output_index: int = 0


class _OfPart(ServerEvent, frozen=True, kw_only=True):
    """An answer has one item with one part, so both indices are 0."""

    response_id: str
    item_id: str
    output_index: int = 0
    content_index: int = 0


class PartAdded(_OfPart, frozen=True, kw_only=True, tag="response.content_part.added"):
    part: Object


class PartDone(_OfPart, frozen=True, kw_only=True, tag="response.content_part.done"):
    part: Object


class TextDelta(_OfPart, frozen=True, kw_only=True, tag="response.output_text.delta"):
    delta: str


class TextDone(_OfPart, frozen=True, kw_only=True, tag="response.output_text.done"):
    text: str


class TranscriptDelta(_OfPart, frozen=True, kw_only=True, tag="response.output_audio_transcript.delta"):
    delta: str


class TranscriptDone(_OfPart, frozen=True, kw_only=True, tag="response.output_audio_transcript.done"):
    transcript: str


class AudioDelta(_OfPart, frozen=True, kw_only=True, tag="response.output_audio.delta"):
    """`delta` is sound in the answer's format (msgspec encodes bytes in base64); `pts_ms` is extra: its place in the item."""

    delta: bytes
    pts_ms: float


class AudioDone(_OfPart, frozen=True, kw_only=True, tag="response.output_audio.done"):
    pass


class ResponseDone(ServerEvent, frozen=True, kw_only=True, tag="response.done"):
    response: Object


class PlaybackStarted(ServerEvent, frozen=True, kw_only=True, tag="output_audio_buffer.started"):
    """This and the next two are said where the server plays: over WebRTC."""

    response_id: str


class PlaybackStopped(ServerEvent, frozen=True, kw_only=True, tag="output_audio_buffer.stopped"):
    response_id: str


class PlaybackCleared(ServerEvent, frozen=True, kw_only=True, tag="output_audio_buffer.cleared"):
    response_id: str


_encoder = msgspec.json.Encoder()
_fields = msgspec.json.Decoder(Object)


class EventEncoder:
    """Numbers the events of a session, over all its connections, and makes them text. The number is the end of the `event_id`."""

    def __init__(self, session_id: str) -> None:
        self._session = session_id.removeprefix("sess_")
        self.attachment = 0
        """Sets events that have one number apart: the greetings of connections."""
        self.seq = 0
        """Of the newest event."""

    def encode(self, event: ServerEvent) -> bytes:
        self.seq += 1
        return self.named(event, self.seq)

    def encode_again(self, text: bytes) -> bytes:
        """An event that has been encoded before, under the next number."""
        self.seq += 1
        return _encoder.encode(_fields.decode(text) | {"event_id": self._name(self.seq)})

    def named(self, event: ServerEvent, seq: int) -> bytes:
        """Under a number that is there already."""
        return _encoder.encode(msgspec.structs.replace(event, event_id=self._name(seq)))

    def _name(self, seq: int) -> str:
        return f"event_{self._session}_{self.attachment:x}_{seq}"
