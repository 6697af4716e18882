"""From what a client said to what a session can do. Every refusal names the field, what was expected and what came."""

import base64
import binascii
import uuid
from typing import TypeAlias

from realtime.blank import is_blank
from realtime.catalogue import Catalogue
from realtime.errors import Invalid, Refusal
from realtime.openai_realtime import client_events as wire
from realtime.openai_realtime.session_config import (
    checked_length,
    chosen_format,
    chosen_voice,
    modality,
    refuse_tools,
    token_limit,
)
from realtime.openai_realtime.session_patch import ItemPart, ResponseOutput, ResponsePatch, WireItem
from sessions.voice import commands
from sessions.voice.items import InputAudio, InputText, Item, OutputAudio, OutputText, Part

SLICE_CHARACTERS = 256 << 10
"""A multiple of 4; decoded in half a millisecond."""

PlainEvent: TypeAlias = (
    wire.Append
    | wire.Commit
    | wire.Clear
    | wire.ItemCreate
    | wire.ItemDelete
    | wire.ItemRetrieve
    | wire.ItemTruncate
    | wire.ResponseCreate
    | wire.ResponseCancel
    | wire.ClearPlayback
    | wire.Played
)
"""Every client event but session.update, which needs the present session to become a command."""


def to_command(event: PlainEvent, catalogue: Catalogue, max_append_bytes: int) -> commands.Command:
    """Raises Refusal."""
    match event:
        case wire.Append():
            return commands.AppendAudio(decoded_audio("audio", event.audio, max_append_bytes))
        case wire.Commit():
            return commands.CommitAudio()
        case wire.Clear():
            return commands.ClearAudio()
        case wire.ItemCreate():
            return commands.CreateItem(_item("item", event.item), event.previous_item_id)
        case wire.ItemDelete():
            return commands.DeleteItem(event.item_id)
        case wire.ItemRetrieve():
            return commands.RetrieveItem(event.item_id)
        case wire.ItemTruncate():
            return commands.TruncateItem(event.item_id, event.content_index, event.audio_end_ms)
        case wire.ResponseCreate():
            return _response(event.response or ResponsePatch(), catalogue)
        case wire.ResponseCancel():
            return commands.CancelResponse(event.response_id)
        case wire.ClearPlayback():
            return commands.ClearPlayback()
        case wire.Played():
            return commands.AcknowledgePlayback(event.item_id, event.content_index, event.audio_ms)


def decoded_audio(field: str, text: str, max_bytes: int) -> bytes:
    """Strict: standard alphabet, padded, no white space, not empty."""
    if not text:
        raise Invalid(field, "base64 of audio", text, code="invalid_audio")
    if len(text) > (max_bytes + 2) // 3 * 4:
        raise _too_much_audio(field, len(text) // 4 * 3, max_bytes)
    try:
        pcm = _strictly_decoded(text)
    except (binascii.Error, ValueError) as bad:
        message = f"{field}: expected base64 with padding and no white space: {bad}"
        raise Refusal(message, code="invalid_audio", field=field) from bad
    if len(pcm) > max_bytes:
        raise _too_much_audio(field, len(pcm), max_bytes)
    return pcm


def _strictly_decoded(text: str) -> bytes:
    """In slices, between which other threads get their turn: one call for 20 MiB would hold the interpreter for 35 ms."""
    if len(text) % 4:
        raise ValueError(f"{len(text)} characters are no multiple of 4")
    if text.find("=", 0, -2) >= 0:
        raise ValueError("padding before the end")
    slices = range(0, len(text), SLICE_CHARACTERS)
    return b"".join(base64.b64decode(text[start : start + SLICE_CHARACTERS], validate=True) for start in slices)


def _too_much_audio(field: str, got: int, max_bytes: int) -> Refusal:
    message = f"{field}: expected at most {max_bytes} bytes of audio in one event, got {got}"
    return Refusal(message, status=413, code="audio_too_large", field=field)


def _response(patch: ResponsePatch, catalogue: Catalogue) -> commands.CreateResponse:
    refuse_tools("response.tools", patch.tools, patch.tool_choice, "response.tool_choice")
    if patch.prompt is not None:
        raise Invalid("response.prompt", "null: there are no stored prompts here", patch.prompt, code="unsupported")
    output = ResponseOutput() if patch.audio is None or patch.audio.output is None else patch.audio.output
    voice = None if output.voice is None else chosen_voice("response.audio.output.voice", output.voice, catalogue)
    sound_format = None if output.format is None else chosen_format("response.audio.output.format", output.format)
    if patch.instructions is not None:
        checked_length("response.instructions", patch.instructions)
    return commands.CreateResponse(
        instructions=patch.instructions,
        modality=None if patch.output_modalities is None else modality("response.output_modalities", patch.output_modalities),
        voice=voice,
        sound_format=sound_format,
        max_output_tokens=token_limit(patch.max_output_tokens),
        conversation=patch.conversation or "auto",
        input=None if patch.input is None else tuple(_item(f"response.input[{n}]", item) for n, item in enumerate(patch.input)),
        metadata=patch.metadata or {},
    )


def _item(field: str, item: WireItem) -> Item:
    if item.type != "message":
        raise Invalid(f"{field}.type", "message", item.type, code="unsupported")
    if item.id == "" or (item.id is not None and len(item.id) > 64):
        raise Invalid(f"{field}.id", "1 to 64 characters", item.id)
    if not item.content:
        raise Invalid(f"{field}.content", "at least one part", item.content)
    parts = tuple(_part(f"{field}.content[{n}]", item.role, part) for n, part in enumerate(item.content))
    return Item(id=item.id or f"item_{uuid.uuid4().hex[:20]}", role=item.role, status="completed", parts=parts)


def _part(field: str, role: str, part: ItemPart) -> Part:
    match role, part.type:
        case "user" | "system", "input_text":
            return InputText(_text(f"{field}.text", part.text))
        case "user", "input_audio":
            if part.transcript is None:
                message = f"{field}: audio is heard through input_audio_buffer.append; here it needs its transcript"
                raise Refusal(message, code="unsupported", field=field)
            return InputAudio(_text(f"{field}.transcript", part.transcript), 0)
        case "assistant", "output_text":
            return OutputText(_text(f"{field}.text", part.text))
        case "assistant", "output_audio":
            return OutputAudio(_text(f"{field}.transcript", part.transcript), 0)
        case _:
            raise Invalid(f"{field}.type", _PART_TYPES[role], part.type)


_PART_TYPES = {
    "user": "input_text or input_audio",
    "system": "input_text",
    "assistant": "output_text or output_audio",
}


def _text(field: str, text: str | None) -> str:
    if text is None or is_blank(text):
        raise Invalid(field, "some text", text)
    checked_length(field, text)
    return text
