"""What a deployment answers to by name: models by what they do, and voices."""

from collections.abc import Mapping
from pathlib import Path

import msgspec

from engines.deployment import GraphSettings, StageSettings
from realtime.errors import UnknownVoice

STOCK_VOICES = frozenset(
    ("alloy", "ash", "ballad", "cedar", "coral", "echo", "fable", "marin", "nova", "onyx", "sage", "shimmer", "verse")
)
SPEAKING_STAGES: Mapping[str, tuple[str, ...]] = {"audio": ("talker", "code2wav"), "narration": ("narrator",)}
"""By output, the stages from text to sound, the one that takes text first."""


class Catalogue(msgspec.Struct, frozen=True, kw_only=True):
    """`pipeline` is the model of realtime sessions; `chat`, `transcription`, `pictures` and `films` are the models of such work,
    empty where nothing does it. `voices` maps a voice to the output of the graph that speaks with it, the default one first, and
    `speakers` to the model behind it."""

    pipeline: str
    chat: tuple[str, ...] = ()
    transcription: tuple[str, ...] = ()
    pictures: tuple[str, ...] = ()
    films: tuple[str, ...] = ()
    voices: Mapping[str, str] = {}
    speakers: Mapping[str, str] = {}

    @property
    def speech(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(self.speakers.values()))

    @property
    def models(self) -> tuple[str, ...]:
        """Every name that a `model` field may hold somewhere."""
        return tuple(dict.fromkeys((self.pipeline, *self.chat, *self.speech, *self.transcription, *self.pictures, *self.films)))

    @property
    def default_voice(self) -> str:
        """Empty when nothing here speaks."""
        return next(iter(self.voices), "")

    def voices_of(self, model: str) -> tuple[str, ...]:
        return tuple(voice for voice, speaker in self.speakers.items() if speaker == model)

    def voice(self, field: str, name: str, default: str = "") -> str:
        """The voice meant by `name`. Stock clients name OpenAI's own voices unasked, so those stand for the default one.

        Raises UnknownVoice, blaming `field`.
        """
        if name in self.voices:
            return name
        if name in STOCK_VOICES and self.voices:
            return default or self.default_voice
        raise UnknownVoice(field, name, tuple(self.voices))


def catalogue(graph: GraphSettings) -> Catalogue:
    pipeline, models = f"antiphon-{graph.pipeline}", {name: _name(stage) for name, stage in graph.stages.items()}
    thinker, recogniser, painter = models.get("thinker"), models.get("asr"), models.get("painter")
    outputs = {voice: chosen.output for voice, chosen in graph.voices.items()}
    return Catalogue(
        pipeline=pipeline,
        chat=(thinker, pipeline) if thinker else (),
        transcription=(recogniser,) if recogniser else (),
        pictures=(painter, pipeline) if painter and graph.pipeline == "images" else (),
        films=(painter, pipeline) if painter and graph.pipeline == "videos" else (),
        voices=outputs,
        speakers={voice: models[stage] for voice, output in outputs.items() if (stage := _entry(output)) in models},
    )


def _entry(output: str) -> str:
    return SPEAKING_STAGES.get(output, ("",))[0]


def _name(stage: StageSettings) -> str:
    return stage.weights or Path(stage.directory).name
