"""How a request names its voice and its model, and which stages of the pipeline a voice takes."""

from typing import TypeAlias

import msgspec

from engines.parameters import Parameters, Speech
from realtime.catalogue import SPEAKING_STAGES, Catalogue
from realtime.errors import Refusal, UnknownModel

RATE_HZ = 24_000
"""Of all speech that goes out."""


class VoiceReference(msgspec.Struct, frozen=True):
    id: str


VoiceField: TypeAlias = str | VoiceReference


class Voice(msgspec.Struct, frozen=True):
    """`output` is what to ask of the graph, `entry` the stage that takes the text."""

    name: str
    output: str

    @property
    def entry(self) -> str:
        return SPEAKING_STAGES[self.output][0]

    def parameters(self, speed: float = 1.0) -> dict[str, Parameters]:
        return {stage: Speech(voice=self.name, speed=speed, rate=RATE_HZ) for stage in SPEAKING_STAGES[self.output]}


def chosen_voice(catalogue: Catalogue, wanted: VoiceField, field: str) -> Voice:
    """Raises Refusal (400) that names the voices there are."""
    if not catalogue.voices:
        raise Refusal(f"{field}: this deployment has no voices", code="unknown_voice", field=field)
    return _voice(catalogue, catalogue.voice(field, _name(wanted)))


def speaking_voice(catalogue: Catalogue, model: str, wanted: VoiceField | None) -> Voice:
    """The voice of this model; its first one when the client names none, or one of OpenAI's. Raises Refusal: 404 for a model
    that does not speak, 400 for another model's voice."""
    check_model(catalogue.speech, model, "speech")
    own = catalogue.voices_of(model)
    name = own[0] if wanted is None else catalogue.voice("voice", _name(wanted), default=own[0])
    if name not in own:
        speaker = catalogue.speakers.get(name, "no model")
        message = f"voice: expected {' or '.join(own)} with model {model}, got {name}, which is a voice of {speaker}"
        raise Refusal(message, code="voice_of_another_model", field="voice")
    return _voice(catalogue, name)


def check_model(fitting: tuple[str, ...], model: str, work: str) -> None:
    """Raises Refusal (404) that names the models that do such work."""
    if model not in fitting:
        raise UnknownModel(model, fitting, work)


def _name(wanted: VoiceField) -> str:
    return wanted.id if isinstance(wanted, VoiceReference) else wanted


def _voice(catalogue: Catalogue, name: str) -> Voice:
    return Voice(name, catalogue.voices[name])
