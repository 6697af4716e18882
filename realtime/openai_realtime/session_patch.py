"""The shapes of what a client may change: sessions, responses, items. UNSET keeps what there is."""

from typing import Annotated, Literal, TypeAlias

import msgspec
from msgspec import UNSET, UnsetType

Probability: TypeAlias = Annotated[float, msgspec.Meta(ge=0.0, le=1.0)]
Milliseconds: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=60_000)]
Whole: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]
"""JSON knows longer numbers, which no message to an engine can carry."""
IdleTimeout: TypeAlias = Annotated[int, msgspec.Meta(ge=1_000, le=600_000)]
Speed: TypeAlias = Annotated[float, msgspec.Meta(ge=0.25, le=1.5)]
Tokens: TypeAlias = Annotated[int, msgspec.Meta(ge=1, le=4096)]
TokenLimit: TypeAlias = Tokens | Literal["inf"] | None
OpenObject: TypeAlias = dict[str, object]


class FormatPatch(msgspec.Struct, frozen=True):
    """Any format is taken, so that the refusal of a wrong one can name both."""

    type: str
    rate: Whole | None = None


class Transcription(msgspec.Struct, frozen=True):
    """Model names are hints of stock clients; the deployment's recogniser is used."""

    model: str | None = None
    language: str | None = None
    prompt: str | None = None


class TurnDetectionPatch(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Without `type` the present kind of turn detection is changed. Which fields belong to which type is checked later. An
    `idle_timeout_ms` of null switches it off."""

    type: Literal["server_vad", "semantic_vad"] | None = None
    threshold: Probability | None = None
    prefix_padding_ms: Milliseconds | None = None
    silence_duration_ms: Milliseconds | None = None
    idle_timeout_ms: IdleTimeout | UnsetType | None = UNSET
    eagerness: Literal["low", "medium", "high", "auto"] | None = None
    create_response: bool | None = None
    interrupt_response: bool | None = None


class InputPatch(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`transcription` and `turn_detection` null switch these off."""

    format: FormatPatch | None = None
    transcription: Transcription | UnsetType | None = UNSET
    turn_detection: TurnDetectionPatch | UnsetType | None = UNSET
    noise_reduction: OpenObject | None = None


class VoiceId(msgspec.Struct, frozen=True):
    id: str


class OutputPatch(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    format: FormatPatch | None = None
    voice: str | VoiceId | None = None
    speed: Speed | None = None


class AudioPatch(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    input: InputPatch | None = None
    output: OutputPatch | None = None


class SessionPatch(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`model` is a hint of stock clients and changes nothing."""

    type: Literal["realtime"] = "realtime"
    model: str | None = None
    instructions: str | None = None
    output_modalities: list[str] | None = None
    max_output_tokens: TokenLimit | UnsetType = UNSET
    audio: AudioPatch | None = None
    tools: list[OpenObject] | None = None
    tool_choice: str | OpenObject | None = None
    parallel_tool_calls: bool | None = None
    tracing: str | OpenObject | UnsetType | None = UNSET
    truncation: str | OpenObject | None = None
    include: list[str] | None = None
    prompt: OpenObject | None = None
    reasoning: OpenObject | None = None


class ItemPart(msgspec.Struct, frozen=True):
    type: str
    text: str | None = None
    transcript: str | None = None
    audio: str | None = None


class WireItem(msgspec.Struct, frozen=True):
    """Content of a message; other types of item are refused by name."""

    type: str = "message"
    id: str | None = None
    role: Literal["system", "user", "assistant"] = "user"
    content: list[ItemPart] = []


class ResponseOutput(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    format: FormatPatch | None = None
    voice: str | VoiceId | None = None


class ResponseAudio(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    output: ResponseOutput | None = None


class ResponsePatch(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """None takes the session's value. `conversation` "none" answers out of band."""

    instructions: str | None = None
    output_modalities: list[str] | None = None
    max_output_tokens: TokenLimit = None
    audio: ResponseAudio | None = None
    conversation: Literal["auto", "none"] | None = None
    input: list[WireItem] | None = None
    metadata: dict[str, str] | None = None
    tools: list[OpenObject] | None = None
    tool_choice: str | OpenObject | None = None
    parallel_tool_calls: bool | None = None
    prompt: OpenObject | None = None
    reasoning: OpenObject | None = None
