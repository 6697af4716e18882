"""What `POST /v1/chat/completions` takes. What OpenAI's API knows and this server cannot do is refused, not ignored."""

from collections.abc import Sized
from typing import Annotated, Literal, TypeAlias

import msgspec

from engines.parameters import Generation, Message
from realtime.catalogue import Catalogue
from realtime.errors import Invalid
from realtime.media.formats import AudioFormat
from realtime.rest.voices import Voice, VoiceField, chosen_voice

Role: TypeAlias = Literal["system", "developer", "user", "assistant"]
AtLeastOne: TypeAlias = Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1)]
CHAT_AUDIO_FORMATS: dict[str, AudioFormat] = {"wav": "wav", "mp3": "mp3", "flac": "flac", "opus": "opus", "pcm16": "pcm"}
MAX_STOPS = 4


class AudioInput(msgspec.Struct, frozen=True):
    """`data` is the file in base64; what it really is the file itself tells."""

    data: str
    format: str


class ContentPart(msgspec.Struct, frozen=True):
    type: str
    text: str | None = None
    input_audio: AudioInput | None = None


class ChatMessage(msgspec.Struct, frozen=True):
    role: str
    content: str | tuple[ContentPart, ...] | None = None


class AudioOutput(msgspec.Struct, frozen=True):
    voice: VoiceField
    format: str


class StreamOptions(msgspec.Struct, frozen=True):
    include_usage: bool = False


class ResponseFormat(msgspec.Struct, frozen=True):
    type: str


class ChatBody(msgspec.Struct, frozen=True):
    """`temperature` is 0 unless given: so small a model is at its best when it says the likeliest."""

    model: str
    messages: tuple[ChatMessage, ...]
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    max_tokens: AtLeastOne | None = None
    max_completion_tokens: AtLeastOne | None = None
    temperature: Annotated[float, msgspec.Meta(ge=0, le=2)] | None = None
    top_p: Annotated[float, msgspec.Meta(gt=0, le=1)] | None = None
    stop: str | tuple[str, ...] | None = None
    seed: Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)] | None = None
    n: int | None = None
    modalities: tuple[str, ...] | None = None
    audio: AudioOutput | None = None
    tools: tuple[msgspec.Raw, ...] | None = None
    functions: tuple[msgspec.Raw, ...] | None = None
    tool_choice: str | dict[str, object] | None = None
    response_format: ResponseFormat | None = None
    logprobs: bool | None = None
    top_logprobs: int | None = None
    logit_bias: dict[str, float] | None = None
    frequency_penalty: float | None = None
    presence_penalty: float | None = None

    def generation(self, messages: tuple[Message, ...]) -> Generation:
        return Generation(
            messages=messages,
            max_tokens=self.max_completion_tokens or self.max_tokens,
            temperature=0.0 if self.temperature is None else self.temperature,
            top_p=1.0 if self.top_p is None else self.top_p,
            stop=self.stops(),
            seed=self.seed,
        )

    def stops(self) -> tuple[str, ...]:
        return (self.stop,) if isinstance(self.stop, str) else self.stop or ()


class SpokenAnswer(msgspec.Struct, frozen=True):
    voice: Voice
    format: AudioFormat


def check(body: ChatBody) -> None:
    """Raises Refusal (400) for what is well formed but cannot be had here."""
    if not body.messages:
        raise Invalid("messages", "at least one message", [])
    if body.n not in (None, 1):
        raise Invalid("n", "1", body.n)
    stops = body.stops()
    if len(stops) > MAX_STOPS or not all(stops):
        raise Invalid("stop", f"at most {MAX_STOPS} texts that are not empty", list(stops))
    if body.response_format is not None and body.response_format.type != "text":
        raise Invalid("response_format.type", "'text'", body.response_format.type)
    _check_absent("tools", "no tools: this server's models call none", body.tools)
    _check_absent("functions", "no functions: this server's models call none", body.functions)
    if body.tool_choice not in (None, "auto", "none"):
        raise Invalid("tool_choice", "'auto' or 'none', as there are no tools", body.tool_choice, code="unsupported_parameter")
    _check_absent("logprobs", "false", body.logprobs)
    _check_absent("top_logprobs", "0", body.top_logprobs)
    _check_absent("logit_bias", "no bias", body.logit_bias)
    _check_absent("frequency_penalty", "0", body.frequency_penalty)
    _check_absent("presence_penalty", "0", body.presence_penalty)


def _check_absent(field: str, expected: str, value: Sized | float | None) -> None:
    if value:
        got = f"{len(value)} of them" if isinstance(value, Sized) else value
        raise Invalid(field, expected, got, code="unsupported_parameter")


def spoken_answer(body: ChatBody, catalogue: Catalogue) -> SpokenAnswer | None:
    """How the answer is to be spoken; None when text is all that is wanted. Raises Refusal (400)."""
    for index, modality in enumerate(body.modalities or ()):
        if modality not in ("text", "audio"):
            raise Invalid(f"modalities[{index}]", "'text' or 'audio'", modality)
    if "audio" not in (body.modalities or ()):
        return None
    if body.audio is None:
        raise Invalid("audio", "voice and format, since modalities has 'audio'", None, code="missing_required_parameter")
    if body.audio.format not in CHAT_AUDIO_FORMATS:
        raise Invalid("audio.format", f"one of {', '.join(CHAT_AUDIO_FORMATS)}", body.audio.format)
    if body.stream and body.audio.format != "pcm16":
        raise Invalid("audio.format", "'pcm16' when stream is true", body.audio.format)
    voice = chosen_voice(catalogue, body.audio.voice, "audio.voice")
    return SpokenAnswer(voice, CHAT_AUDIO_FORMATS[body.audio.format])
