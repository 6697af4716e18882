"""What one response will be: the session's configuration with the wishes of its command, checked."""

from collections.abc import Mapping
from typing import Literal

import msgspec

from engines.parameters import Generation, Message, Parameters, Speech
from engines.pipelines.voice import VOICE
from engines.requests import Graph, Request
from sessions.voice.audio_buffer import SAMPLE_RATE
from sessions.voice.commands import CommandRefused, CreateResponse
from sessions.voice.config import SoundFormat
from sessions.voice.items import Item
from sessions.voice.state import VoiceState


class AnswerPlan(msgspec.Struct, frozen=True, kw_only=True):
    """`output` is the graph's output that speaks, "" for text. `max_output_tokens` is what the client asked for,
    `max_tokens` what the thinker is given."""

    instructions: str
    modality: Literal["audio", "text"]
    voice: str
    sound_format: SoundFormat
    output: str
    speed: float
    temperature: float
    repetition_penalty: float
    max_output_tokens: int | None
    max_tokens: int | None
    conversation: Literal["auto", "none"]
    input: tuple[Item, ...] | None
    metadata: dict[str, str]

    @property
    def spoken(self) -> bool:
        return self.modality == "audio"

    def request(self, state: VoiceState, messages: tuple[Message, ...]) -> Request:
        outputs = ("text", self.output) if self.spoken else ("text",)
        thinking = Generation(
            messages=messages,
            max_tokens=self.max_tokens,
            temperature=self.temperature,
            repetition_penalty=self.repetition_penalty,
        )
        speaking = Speech(voice=self.voice, speed=self.speed, rate=SAMPLE_RATE)
        parameters: dict[str, Parameters] = {"thinker": thinking}
        for name in VOICE.active_stages("thinker", outputs):
            if VOICE.stage(name).parameters is Speech:
                parameters[name] = speaking
        return state.request("thinker", outputs, parameters)


def plan_answer(state: VoiceState, wish: CreateResponse) -> AnswerPlan:
    """Raises CommandRefused."""
    config, settings = state.config, state.settings
    modality = wish.modality or config.modality
    voice = wish.voice or config.voice
    asked = config.max_output_tokens if wish.max_output_tokens is None else wish.max_output_tokens
    return AnswerPlan(
        instructions=config.instructions if wish.instructions is None else wish.instructions,
        modality=modality,
        voice=voice,
        sound_format=wish.sound_format or config.output_format,
        output=speaking_output(state.graph, state.voices, voice) if modality == "audio" else "",
        speed=config.speed,
        temperature=config.temperature if wish.temperature is None else wish.temperature,
        repetition_penalty=settings.repetition_penalty,
        max_output_tokens=asked,
        max_tokens=settings.spoken_answer_tokens if asked is None and modality == "audio" else asked,
        conversation=wish.conversation,
        input=wish.input,
        metadata=wish.metadata,
    )


def speaking_output(graph: Graph, voices: Mapping[str, str], voice: str) -> str:
    """The graph's output that speaks with `voice`. Raises CommandRefused."""
    if voice not in voices or not graph.offers(voices[voice]):
        there_are = ", ".join(name for name, output in voices.items() if graph.offers(output)) or "none"
        raise CommandRefused("invalid_voice", f"voice: expected one of {there_are}, got {voice!r}", "voice")
    return voices[voice]
