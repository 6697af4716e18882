"""Everything a client may tell a voice session. The edge has checked shapes; the session checks meaning."""

from typing import Literal, TypeAlias

import msgspec

from sessions.voice.config import SoundFormat, VoiceConfig
from sessions.voice.items import Item


class CommandRefused(Exception):
    """The session goes on. `field` names what was wrong in dotted form; the message says what was expected and what came."""

    def __init__(self, code: str, message: str, field: str | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.field = field


class Configure(msgspec.Struct, frozen=True):
    """The whole configuration to hold from now on (the edge has merged the client's change into the present one)."""

    config: VoiceConfig


class AppendAudio(msgspec.Struct, frozen=True):
    """PCM16 little endian, mono, 24 kHz. An odd byte is kept and joined with the next append."""

    pcm: bytes


class CommitAudio(msgspec.Struct, frozen=True):
    pass


class ClearAudio(msgspec.Struct, frozen=True):
    pass


class CreateItem(msgspec.Struct, frozen=True):
    """`previous_item_id`: None appends, "root" puts first."""

    item: Item
    previous_item_id: str | None = None


class DeleteItem(msgspec.Struct, frozen=True):
    item_id: str


class RetrieveItem(msgspec.Struct, frozen=True):
    item_id: str


class TruncateItem(msgspec.Struct, frozen=True):
    """The client has played `audio_end_ms` of this assistant item; clamped to what there is."""

    item_id: str
    content_index: int
    audio_end_ms: int


class AcknowledgePlayback(msgspec.Struct, frozen=True):
    """A client that plays for itself has played `audio_ms` of this item by now; clamped to what it was given, and never less than
    it has said before."""

    item_id: str
    content_index: int
    audio_ms: int


class CreateResponse(msgspec.Struct, frozen=True, kw_only=True):
    """None fields take the session's value. `conversation` "none" answers out of band; `input` then replaces the history."""

    instructions: str | None = None
    modality: Literal["audio", "text"] | None = None
    voice: str | None = None
    sound_format: SoundFormat | None = None
    max_output_tokens: int | None = None
    temperature: float | None = None
    conversation: Literal["auto", "none"] = "auto"
    input: tuple[Item, ...] | None = None
    metadata: dict[str, str] = {}


class CancelResponse(msgspec.Struct, frozen=True):
    response_id: str | None = None


class ClearPlayback(msgspec.Struct, frozen=True):
    """Stop the live answer and fall silent. For clients whose answers are played by the server's side."""


Command: TypeAlias = (
    Configure
    | AppendAudio
    | CommitAudio
    | ClearAudio
    | CreateItem
    | DeleteItem
    | RetrieveItem
    | TruncateItem
    | AcknowledgePlayback
    | CreateResponse
    | CancelResponse
    | ClearPlayback
)
