"""What `POST /v1/chat/completions` answers, in OpenAI's shape; `metrics` and `input_transcript` are ours."""

import msgspec
from msgspec import UNSET, UnsetType

from sessions.voice.events import AnswerTiming


class CachedTokens(msgspec.Struct, frozen=True):
    cached_tokens: int


class ChatUsage(msgspec.Struct, frozen=True):
    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    prompt_tokens_details: CachedTokens


class AudioAnswer(msgspec.Struct, frozen=True):
    """Nothing is stored, so `expires_at` is the moment of the answer itself."""

    id: str
    data: str
    transcript: str
    expires_at: int


class AnswerMessage(msgspec.Struct, frozen=True, kw_only=True):
    role: str = "assistant"
    content: str | None
    refusal: None = None
    audio: AudioAnswer | UnsetType = UNSET


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    index: int = 0
    message: AnswerMessage
    finish_reason: str
    logprobs: None = None


class ChatCompletion(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    object: str = "chat.completion"
    created: int
    model: str
    choices: tuple[Choice, ...]
    usage: ChatUsage
    metrics: AnswerTiming
    input_transcript: str | UnsetType = UNSET


class AudioDelta(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`data` is PCM16 mono at 24 kHz in base64."""

    id: str | None = None
    transcript: str | None = None
    data: str | None = None
    expires_at: int | None = None


class Delta(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    role: str | None = None
    content: str | None = None
    audio: AudioDelta | None = None


class ChunkChoice(msgspec.Struct, frozen=True, kw_only=True):
    index: int = 0
    delta: Delta
    finish_reason: str | None = None


class ChatChunk(msgspec.Struct, frozen=True, kw_only=True):
    """`usage` is null in every chunk but the last when the client asked for it, and absent when it did not."""

    id: str
    object: str = "chat.completion.chunk"
    created: int
    model: str
    choices: tuple[ChunkChoice, ...]
    usage: ChatUsage | UnsetType | None = UNSET
    metrics: AnswerTiming | UnsetType = UNSET
    input_transcript: str | UnsetType = UNSET
