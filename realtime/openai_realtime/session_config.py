"""A session's configuration between the wire and the session: what a patch changes, and how the whole is shown."""

from collections.abc import Iterable
from typing import Literal, cast

import msgspec
from msgspec import UNSET

from realtime.catalogue import Catalogue
from realtime.errors import Invalid, Refusal
from realtime.openai_realtime.session_patch import (
    AudioPatch,
    FormatPatch,
    InputPatch,
    OpenObject,
    OutputPatch,
    SessionPatch,
    TokenLimit,
    TurnDetectionPatch,
    VoiceId,
)
from sessions.voice.config import SemanticVad, ServerVad, SoundFormat, TurnDetection, VoiceConfig

RATES_HZ: dict[SoundFormat, int] = {"pcm": 24_000, "pcmu": 8_000, "pcma": 8_000}
MAX_TEXT_CHARACTERS = 100_000
"""Far beyond what fits into any context here; longer text is refused before anybody tokenises it."""
MAX_NESTING = 32
"""Of an object that is kept as it is, and encoded again in many places: the encoder has the stack's depth and no more."""
LANGUAGE = "en"
"""What the recogniser understands; a session has no setting for it."""


class WireSession(msgspec.Struct, frozen=True):
    """`tracing` is kept for the client that asked for it; nothing here traces to a third party."""

    config: VoiceConfig
    tracing: str | OpenObject | None = None


def apply(session: WireSession, patch: SessionPatch, catalogue: Catalogue) -> WireSession:
    """`session` with what `patch` names changed and everything else as it was. Raises Refusal; then nothing has changed."""
    _refuse_unserved(patch)
    config = session.config
    if patch.instructions is not None:
        checked_length("session.instructions", patch.instructions)
        config = msgspec.structs.replace(config, instructions=patch.instructions)
    if patch.output_modalities is not None:
        config = msgspec.structs.replace(config, modality=modality("session.output_modalities", patch.output_modalities))
    if patch.max_output_tokens is not UNSET:
        config = msgspec.structs.replace(config, max_output_tokens=token_limit(patch.max_output_tokens))
    if patch.audio is not None:
        config = _apply_audio(config, patch.audio, catalogue)
    tracing = session.tracing if patch.tracing is UNSET else _checked_nesting("session.tracing", patch.tracing)
    return WireSession(config, tracing)


def shown_session(session: WireSession, session_id: str) -> dict[str, object]:
    """The `session` object of session.created and session.updated: every effective value, spelled out."""
    config = session.config
    return {
        "type": "realtime",
        "object": "realtime.session",
        "id": session_id,
        "model": config.model,
        "output_modalities": [config.modality],
        "instructions": config.instructions,
        "max_output_tokens": "inf" if config.max_output_tokens is None else config.max_output_tokens,
        "tools": [],
        "tool_choice": "auto",
        "tracing": session.tracing,
        "truncation": "auto",
        "include": None,
        "prompt": None,
        "audio": {
            "input": {
                "format": shown_format(config.input_format),
                "transcription": {"model": config.model, "language": LANGUAGE} if config.transcribe_input else None,
                "noise_reduction": None,
                "turn_detection": _shown_turn_detection(config.turn_detection),
            },
            "output": {"format": shown_format(config.output_format), "voice": config.voice, "speed": config.speed},
        },
    }


def checked_length(field: str, text: str) -> None:
    if len(text) > MAX_TEXT_CHARACTERS:
        raise Invalid(field, f"at most {MAX_TEXT_CHARACTERS} characters", f"{len(text)} characters", code="text_too_long")


def _checked_nesting(field: str, value: str | OpenObject | None) -> str | OpenObject | None:
    level: list[object] = [value]
    for _ in range(MAX_NESTING):
        level = [inner for outer in level for inner in _inside(outer)]
        if not level:
            return value
    raise Invalid(field, f"at most {MAX_NESTING} levels of objects and lists", "more")


def _inside(value: object) -> Iterable[object]:
    if isinstance(value, dict):
        return cast("dict[str, object]", value).values()
    return cast("list[object]", value) if isinstance(value, list) else ()


def modality(field: str, asked: list[str]) -> Literal["audio", "text"]:
    match asked:
        case ["audio"]:
            return "audio"
        case ["text"]:
            return "text"
        case _:
            raise Invalid(field, '["audio"] (speech with its transcript) or ["text"]', asked)


def token_limit(asked: TokenLimit) -> int | None:
    return asked if isinstance(asked, int) else None


def chosen_format(field: str, asked: FormatPatch) -> SoundFormat:
    for format, rate_hz in RATES_HZ.items():
        if asked.type == f"audio/{format}" and asked.rate in (None, rate_hz):
            return format
    expected = " or ".join(f"audio/{format} at {rate_hz} Hz" for format, rate_hz in RATES_HZ.items())
    got = f"{asked.type} at {asked.rate} Hz" if asked.rate is not None else asked.type
    raise Refusal(f"{field}: expected {expected}, got {got}", code="unsupported_format", field=field)


def shown_format(format: SoundFormat) -> dict[str, object]:
    """The rate of G.711 is a matter of course."""
    return {"type": "audio/pcm", "rate": RATES_HZ[format]} if format == "pcm" else {"type": f"audio/{format}"}


def chosen_voice(field: str, asked: str | VoiceId, catalogue: Catalogue) -> str:
    return catalogue.voice(field, asked.id if isinstance(asked, VoiceId) else asked)


def refuse_tools(field: str, tools: list[OpenObject] | None, choice: str | OpenObject | None, choice_field: str) -> None:
    if tools:
        raise Refusal(f"{field}: function calls are not served yet, expected an empty list", code="unsupported", field=field)
    if choice not in (None, "auto", "none"):
        raise Invalid(choice_field, "auto or none, as there are no tools", choice)


def _refuse_unserved(patch: SessionPatch) -> None:
    refuse_tools("session.tools", patch.tools, patch.tool_choice, "session.tool_choice")
    if patch.prompt is not None:
        raise Refusal(
            "session.prompt: there are no stored prompts here, use instructions", code="unsupported", field="session.prompt"
        )
    if patch.include:
        raise Invalid("session.include", "an empty list: no log probabilities are known", patch.include, code="unsupported")
    if patch.truncation not in (None, "auto"):
        raise Invalid("session.truncation", "auto", patch.truncation, code="unsupported")


def _apply_audio(config: VoiceConfig, patch: AudioPatch, catalogue: Catalogue) -> VoiceConfig:
    if patch.input is not None:
        config = _apply_input(config, patch.input)
    if patch.output is not None:
        config = _apply_output(config, patch.output, catalogue)
    return config


def _apply_input(config: VoiceConfig, patch: InputPatch) -> VoiceConfig:
    if patch.format is not None:
        config = msgspec.structs.replace(config, input_format=chosen_format("session.audio.input.format", patch.format))
    if patch.noise_reduction is not None:
        field = "session.audio.input.noise_reduction"
        raise Invalid(field, "null: noise reduction is not served", patch.noise_reduction, code="unsupported")
    if patch.transcription is None:
        config = msgspec.structs.replace(config, transcribe_input=False)
    elif patch.transcription is not UNSET:
        if patch.transcription.language not in (None, LANGUAGE):
            raise Invalid("session.audio.input.transcription.language", LANGUAGE, patch.transcription.language)
        config = msgspec.structs.replace(config, transcribe_input=True)
    if patch.turn_detection is not UNSET:
        config = msgspec.structs.replace(config, turn_detection=_turn_detection(config.turn_detection, patch.turn_detection))
    return config


def _apply_output(config: VoiceConfig, patch: OutputPatch, catalogue: Catalogue) -> VoiceConfig:
    if patch.format is not None:
        config = msgspec.structs.replace(config, output_format=chosen_format("session.audio.output.format", patch.format))
    if patch.voice is not None:
        config = msgspec.structs.replace(config, voice=chosen_voice("session.audio.output.voice", patch.voice, catalogue))
    if patch.speed is not None:
        config = msgspec.structs.replace(config, speed=patch.speed)
    return config


_SEMANTIC = {"eagerness": "eagerness", "create_response": "create_response", "interrupt_response": "interrupt_response"}
_SERVER = {
    "threshold": "threshold",
    "prefix_padding_ms": "prefix_padding_ms",
    "silence_duration_ms": "silence_ms",
    "idle_timeout_ms": "idle_timeout_ms",
    "create_response": "create_response",
    "interrupt_response": "interrupt_response",
}
"""Field on the wire → field of the session's record."""


def _turn_detection(present: TurnDetection, patch: TurnDetectionPatch | None) -> TurnDetection:
    """A new type starts from its defaults; the same type, or none named, changes what there is."""
    if patch is None:
        return None
    field = "session.audio.input.turn_detection"
    start = present
    if patch.type == "server_vad" and not isinstance(present, ServerVad):
        start = ServerVad()
    elif patch.type == "semantic_vad" and not isinstance(present, SemanticVad):
        start = SemanticVad()
    if start is None:
        raise Invalid(f"{field}.type", "server_vad or semantic_vad", None, code="missing_required_parameter")
    names = _SERVER if isinstance(start, ServerVad) else _SEMANTIC
    given = {name: value for name, value in msgspec.structs.asdict(patch).items() if _is_given(name, value)}
    for name, value in given.items():
        if name not in names and value is not None:
            raise Invalid(f"{field}.{name}", f"only {', '.join(names)} with this type", value, code="unsupported")
    return msgspec.structs.replace(start, **{names[name]: value for name, value in given.items() if name in names})


def _is_given(name: str, value: object) -> bool:
    """Null changes nothing, but for what can be switched off by it."""
    return value is not UNSET and name != "type" and (value is not None or name == "idle_timeout_ms")


def _shown_turn_detection(turn_detection: TurnDetection) -> dict[str, object] | None:
    if turn_detection is None:
        return None
    server = isinstance(turn_detection, ServerVad)
    names = _SERVER if server else _SEMANTIC
    values = msgspec.structs.asdict(turn_detection)
    return {"type": "server_vad" if server else "semantic_vad", **{wire: values[ours] for wire, ours in names.items()}}
