"""Which stages of the pipeline a voice takes, and how a request names it."""

from typing import TypeAlias

import msgspec

from engines.parameters import Parameters, Speech
from realtime.context import Catalogue
from realtime.errors import Refusal, UnknownModel

RATE_HZ = 24_000
"""Of all speech that goes out."""

STAGES: dict[str, tuple[str, ...]] = {"audio": ("talker", "code2wav"), "narration": ("narrator",)}
"""By output, the stages from text to sound, the one that takes text first."""


class VoiceReference(msgspec.Struct, frozen=True):
    id: str


VoiceField: TypeAlias = str | VoiceReference


class Voice(msgspec.Struct, frozen=True):
    """`output` is what to ask of the graph, `entry` the stage that takes the text."""

    name: str
    output: str

    @property
    def entry(self) -> str:
        return STAGES[self.output][0]

    def parameters(self, speed: float = 1.0) -> dict[str, Parameters]:
        return {stage: Speech(voice=self.name, speed=speed, rate=RATE_HZ) for stage in STAGES[self.output]}


def chosen_voice(catalogue: Catalogue, wanted: VoiceField, field: str) -> Voice:
    """Raises Refusal (400) that names the voices there are."""
    if not catalogue.voices:
        raise Refusal(f"{field}: this deployment has no voices", code="unknown_voice", field=field)
    name = catalogue.voice(field, wanted.id if isinstance(wanted, VoiceReference) else wanted)
    return Voice(name, catalogue.voices[name])


def check_model(catalogue: Catalogue, model: str) -> None:
    """Raises Refusal (404) that names the models there are."""
    if model not in catalogue.models:
        raise UnknownModel(model, catalogue.models)
