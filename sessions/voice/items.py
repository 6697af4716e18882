"""What a conversation is made of."""

from typing import Literal, TypeAlias

import msgspec


class InputText(msgspec.Struct, frozen=True, tag="input_text"):
    text: str


class InputAudio(msgspec.Struct, frozen=True, tag="input_audio"):
    """Speech of the user. `transcript` is None until recognition has answered."""

    transcript: str | None
    duration_ms: int


class OutputText(msgspec.Struct, frozen=True, tag="output_text"):
    text: str


class OutputAudio(msgspec.Struct, frozen=True, tag="output_audio"):
    """Speech of the assistant; after a truncation `transcript` holds what was heard."""

    transcript: str
    duration_ms: int


Part: TypeAlias = InputText | InputAudio | OutputText | OutputAudio
Role: TypeAlias = Literal["system", "user", "assistant"]
ItemStatus: TypeAlias = Literal["in_progress", "completed", "incomplete"]


class Item(msgspec.Struct, frozen=True, kw_only=True):
    """An empty `id` in a command asks the session for one."""

    id: str
    role: Role
    status: ItemStatus
    parts: tuple[Part, ...]


PARTS_OF_ROLE: dict[Role, tuple[str, ...]] = {
    "system": ("input_text",),
    "user": ("input_text", "input_audio"),
    "assistant": ("output_text", "output_audio"),
}


def kind_of(part: Part) -> str:
    match part:
        case InputText():
            return "input_text"
        case InputAudio():
            return "input_audio"
        case OutputText():
            return "output_text"
        case OutputAudio():
            return "output_audio"
