"""The part of a voice session that its client may change."""

from typing import Literal, TypeAlias

import msgspec


class ServerVad(msgspec.Struct, frozen=True, tag="server_vad"):
    """End of turn by silence alone: after `silence_ms` without speech. `threshold` is a speech probability. When nobody has said
    anything for `idle_timeout_ms` after an answer was played, the agent speaks again; None: it waits."""

    threshold: float = 0.5
    prefix_padding_ms: int = 300
    silence_ms: int = 500
    idle_timeout_ms: int | None = None
    create_response: bool = True
    interrupt_response: bool = True


class SemanticVad(msgspec.Struct, frozen=True, tag="semantic_vad"):
    """End of turn by silence whose length the end-of-turn hint decides, scaled by `eagerness`."""

    eagerness: Literal["low", "medium", "high", "auto"] = "auto"
    create_response: bool = True
    interrupt_response: bool = True


TurnDetection: TypeAlias = ServerVad | SemanticVad | None
"""None is manual mode: the client commits and asks for responses itself."""


SoundFormat: TypeAlias = Literal["pcm", "pcmu", "pcma"]
"""How sound looks on the client's side: PCM16 mono at 24 kHz, or G.711 at 8 kHz, in mu-law or A-law."""


class VoiceConfig(msgspec.Struct, frozen=True, kw_only=True):
    """`max_output_tokens` None means unlimited. The formats are the edge's affair: the session's own sound is PCM16 at 24 kHz."""

    model: str
    instructions: str
    voice: str
    modality: Literal["audio", "text"] = "audio"
    speed: float = 1.0
    temperature: float = 0.0
    max_output_tokens: int | None = None
    transcribe_input: bool = True
    input_format: SoundFormat = "pcm"
    output_format: SoundFormat = "pcm"
    turn_detection: TurnDetection = SemanticVad()
