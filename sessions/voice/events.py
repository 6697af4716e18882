"""Everything a voice session tells its client, in the order of the wire. No transport's names in here."""

from typing import Literal, TypeAlias

import msgspec

from engines.requests import StageTiming
from sessions.store.records import Entry
from sessions.voice.config import SoundFormat, VoiceConfig
from sessions.voice.items import Item, Part


class Opened(msgspec.Struct, frozen=True):
    config: VoiceConfig


class Reopened(msgspec.Struct, frozen=True):
    """Another transport has come to the session. `items` is the conversation, with what the live answer has written so far;
    `response_id` that answer, None when there is none. It may be one that is being stopped, whose end then follows. `untold`
    has gone out to nobody, and is not told by this."""

    config: VoiceConfig
    items: tuple[Item, ...]
    response_id: str | None
    untold: tuple[Entry, ...] = ()


class Overtaken(msgspec.Struct, frozen=True):
    """What happened before a Reopened that has told it, and had been told to nobody: it is written down, and not told again."""

    event: "Event"


class Resumed(msgspec.Struct, frozen=True):
    """Another transport has come, whose client has all up to the number `after`; `missed` is what has gone out since, and what
    follows goes on from there. `sounds_lost`: events of sound that went out since and do not come again; None: not known."""

    config: VoiceConfig
    after: int
    missed: tuple[Entry, ...]
    sounds_lost: int | None


class Expiring(msgspec.Struct, frozen=True):
    """The session's longest life is over soon, at `ends_at` (Unix seconds)."""

    config: VoiceConfig
    ends_at: float


class Configured(msgspec.Struct, frozen=True, tag=True):
    config: VoiceConfig


class SpeechStarted(msgspec.Struct, frozen=True):
    """`audio_start_ms` counts from the first appended sample and includes the prefix padding."""

    item_id: str
    audio_start_ms: int


class SpeechStopped(msgspec.Struct, frozen=True):
    item_id: str
    audio_end_ms: int


class IdleTimeout(msgspec.Struct, frozen=True):
    """Nobody has said anything for so long after an answer; the commit of this silence and another answer follow."""

    item_id: str
    audio_start_ms: int
    audio_end_ms: int


class AudioCommitted(msgspec.Struct, frozen=True, tag=True):
    """`answer_follows`: nobody needs to ask for it."""

    item_id: str
    previous_item_id: str | None
    answer_follows: bool = False


class AudioCleared(msgspec.Struct, frozen=True):
    pass


class ItemAdded(msgspec.Struct, frozen=True, tag=True):
    item: Item
    previous_item_id: str | None


class ItemDone(msgspec.Struct, frozen=True, tag=True):
    item: Item
    previous_item_id: str | None


class ItemDeleted(msgspec.Struct, frozen=True, tag=True):
    item_id: str


class ItemRetrieved(msgspec.Struct, frozen=True):
    item: Item


class ItemTruncated(msgspec.Struct, frozen=True, tag=True):
    item_id: str
    content_index: int
    audio_end_ms: int


class TranscriptCompleted(msgspec.Struct, frozen=True, tag=True):
    item_id: str
    content_index: int
    transcript: str
    audio_seconds: float


class Recognised(msgspec.Struct, frozen=True, tag=True):
    """In place of TranscriptCompleted where the client wants none. Not told to it, but written down."""

    item_id: str
    transcript: str
    audio_seconds: float


class AnswerForgone(msgspec.Struct, frozen=True, tag=True):
    """None follows what the user has said until now. Not told to the client, but written down."""


class TranscriptFailed(msgspec.Struct, frozen=True, tag=True):
    item_id: str
    content_index: int
    message: str


ResponseStatus: TypeAlias = Literal["in_progress", "completed", "cancelled", "incomplete", "failed"]
StatusReason: TypeAlias = Literal["", "turn_detected", "client_cancelled", "max_output_tokens", "engine_failed"]


class Usage(msgspec.Struct, frozen=True):
    """Text in tokens as the language model counted them, also those that nobody heard; audio in milliseconds.

    `output_audio_ms`: of an answer that was interrupted, what had been heard of it by then as far as that was known; else all
    that was made.
    """

    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    input_audio_ms: int = 0
    output_audio_ms: int = 0


class AnswerTiming(msgspec.Struct, frozen=True, kw_only=True):
    """Milliseconds from the moment the answer was asked for (for a spoken turn: the end of the user's speech).

    `decision_ms` end of speech → end of turn decided; `transcript_ms` → transcript known; `ttft_ms` → first text;
    `ttfa_ms` → first audio; `total_ms` → everything out. `rtf` is compute time over audio time. None: did not happen.
    """

    decision_ms: float | None = None
    transcript_ms: float | None = None
    ttft_ms: float | None = None
    ttfa_ms: float | None = None
    total_ms: float | None = None
    rtf: float | None = None
    stages: dict[str, StageTiming] = {}


class Response(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    status: ResponseStatus
    reason: StatusReason = ""
    message: str = ""
    modality: Literal["audio", "text"]
    voice: str
    sound_format: SoundFormat = "pcm"
    conversation: Literal["auto", "none"]
    max_output_tokens: int | None = None
    output: tuple[Item, ...] = ()
    usage: Usage | None = None
    timing: AnswerTiming | None = None
    metadata: dict[str, str] = {}


class ResponseCreated(msgspec.Struct, frozen=True, tag=True):
    response: Response


class OutputItemAdded(msgspec.Struct, frozen=True, tag=True):
    response_id: str
    item: Item


class PartAdded(msgspec.Struct, frozen=True, tag=True):
    response_id: str
    item_id: str
    part: Part


class TextDelta(msgspec.Struct, frozen=True, tag=True):
    """`spoken`: the transcript of audio, not text of its own."""

    response_id: str
    item_id: str
    text: str
    spoken: bool


class AudioDelta(msgspec.Struct, frozen=True):
    """PCM16 mono 24 kHz; `pts_ms` is its place in the item. `wanted`: how the client wants it. `out_of_band`:
    it is no part of the conversation, and nobody interrupts it by speaking."""

    response_id: str
    item_id: str
    pcm: bytes
    pts_ms: float
    wanted: SoundFormat = "pcm"
    out_of_band: bool = False


class AudioDone(msgspec.Struct, frozen=True, tag=True):
    """`stopped`: nobody is to hear what a resampler may still hold of it."""

    response_id: str
    item_id: str
    stopped: bool = False


class TextDone(msgspec.Struct, frozen=True, tag=True):
    response_id: str
    item_id: str
    text: str
    spoken: bool


class PartDone(msgspec.Struct, frozen=True, tag=True):
    response_id: str
    item_id: str
    part: Part


class OutputItemDone(msgspec.Struct, frozen=True, tag=True):
    response_id: str
    item: Item


class ResponseDone(msgspec.Struct, frozen=True, tag=True):
    response: Response


class PlaybackCleared(msgspec.Struct, frozen=True):
    """What of the answer had not been played yet never will be; the truncation of its item follows."""

    response_id: str


class SessionError(msgspec.Struct, frozen=True):
    """Something failed that no command is waiting for; the session goes on."""

    code: str
    message: str


Event: TypeAlias = (
    Opened
    | Reopened
    | Overtaken
    | Resumed
    | Expiring
    | Configured
    | SpeechStarted
    | SpeechStopped
    | IdleTimeout
    | AudioCommitted
    | AudioCleared
    | ItemAdded
    | ItemDone
    | ItemDeleted
    | ItemRetrieved
    | ItemTruncated
    | TranscriptCompleted
    | Recognised
    | AnswerForgone
    | TranscriptFailed
    | ResponseCreated
    | OutputItemAdded
    | PartAdded
    | TextDelta
    | AudioDelta
    | AudioDone
    | TextDone
    | PartDone
    | OutputItemDone
    | ResponseDone
    | PlaybackCleared
    | SessionError
)
