"""What a client may say on the wire, and how a message becomes one of these."""

import re
from typing import Literal, TypeAlias

import msgspec
from msgspec import UNSET, UnsetType

from realtime.errors import Refusal, shown
from realtime.openai_realtime.session_patch import ResponsePatch, SessionPatch, Whole, WireItem


class ClientEvent(msgspec.Struct, frozen=True, tag_field="type", kw_only=True):
    event_id: str | None = None


class SessionUpdate(ClientEvent, frozen=True, tag="session.update"):
    session: SessionPatch


class Append(ClientEvent, frozen=True, tag="input_audio_buffer.append"):
    """`audio` is standard base64 with padding and nothing else."""

    audio: str


class Commit(ClientEvent, frozen=True, tag="input_audio_buffer.commit"):
    pass


class Clear(ClientEvent, frozen=True, tag="input_audio_buffer.clear"):
    pass


class ItemCreate(ClientEvent, frozen=True, tag="conversation.item.create"):
    item: WireItem
    previous_item_id: str | None = None


class ItemDelete(ClientEvent, frozen=True, tag="conversation.item.delete"):
    item_id: str


class ItemRetrieve(ClientEvent, frozen=True, tag="conversation.item.retrieve"):
    item_id: str


class ItemTruncate(ClientEvent, frozen=True, tag="conversation.item.truncate"):
    item_id: str
    content_index: Whole
    audio_end_ms: Whole


class ResponseCreate(ClientEvent, frozen=True, tag="response.create"):
    response: ResponsePatch | None = None


class ResponseCancel(ClientEvent, frozen=True, tag="response.cancel"):
    response_id: str | None = None


class Played(ClientEvent, frozen=True, tag="output_audio_buffer.played"):
    """Ours, over a WebSocket alone: the client has played so much of the item by now."""

    item_id: str
    content_index: Whole
    audio_ms: Whole


class ClearPlayback(ClientEvent, frozen=True, tag="output_audio_buffer.clear"):
    """Over WebRTC alone."""


AnyClientEvent: TypeAlias = (
    SessionUpdate
    | Append
    | Commit
    | Clear
    | ItemCreate
    | ItemDelete
    | ItemRetrieve
    | ItemTruncate
    | ResponseCreate
    | ResponseCancel
    | ClearPlayback
    | Played
)

KNOWN_TYPES = (
    "session.update",
    "input_audio_buffer.append",
    "input_audio_buffer.commit",
    "input_audio_buffer.clear",
    "conversation.item.create",
    "conversation.item.delete",
    "conversation.item.retrieve",
    "conversation.item.truncate",
    "response.create",
    "response.cancel",
    "output_audio_buffer.clear",
    "output_audio_buffer.played",
)


class Malformed(Exception):
    """A message that is no client event. `event_id` is the client's, as far as it could be read."""

    def __init__(self, refusal: Refusal, event_id: str | None) -> None:
        super().__init__(str(refusal))
        self.refusal = refusal
        self.event_id = event_id


class _Envelope(msgspec.Struct, frozen=True):
    type: object | UnsetType = UNSET
    event_id: object | UnsetType = UNSET


_decoder = msgspec.json.Decoder(AnyClientEvent)
_envelope_decoder = msgspec.json.Decoder(_Envelope)


def decode(message: bytes) -> AnyClientEvent:
    """Raises Malformed, naming the field, what was expected and what came."""
    try:
        return _decoder.decode(message)
    except msgspec.ValidationError as bad:
        envelope = _envelope(message)
        event_id = envelope.event_id if isinstance(envelope.event_id, str) else None
        raise Malformed(_unknown_type(envelope) or field_refusal(bad), event_id) from bad
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as bad:
        raise Malformed(Refusal(f"message: expected a JSON object, got {bad}", code="invalid_json"), None) from bad


def _envelope(message: bytes) -> _Envelope:
    try:
        return _envelope_decoder.decode(message)
    except (msgspec.MsgspecError, RecursionError):  # typed decoding looks into less of the message than this does
        return _Envelope()


def _unknown_type(envelope: _Envelope) -> Refusal | None:
    if envelope.type is UNSET:
        return None
    if isinstance(envelope.type, str) and envelope.type in KNOWN_TYPES:
        return None
    message = f"type: expected one of {', '.join(KNOWN_TYPES)}, got {shown(envelope.type)}"
    return Refusal(message, code="unknown_event_type", field="type")


_PATH = re.compile(r" - at `\$\.?(?P<path>.*)`$")
_UNKNOWN_FIELD = re.compile(r"Object contains unknown field `(?P<name>.*)`$")
_MISSING_FIELD = re.compile(r"Object missing required field `(?P<name>.*)`$")


def field_refusal(bad: msgspec.ValidationError, prefix: str = "") -> Refusal:
    """msgspec's own sentence (`Expected X, got Y - at $.a.b`) turned into ours, with the field in dotted form."""
    text = str(bad)
    found = _PATH.search(text)
    path = found["path"] if found else ""
    what = text[: found.start()] if found else text
    code: Literal["invalid_value", "unknown_parameter", "missing_required_parameter"] = "invalid_value"
    if unknown := _UNKNOWN_FIELD.match(what):
        path, code, what = _join(path, unknown["name"]), "unknown_parameter", "expected no such field, got one"
    elif missing := _MISSING_FIELD.match(what):
        path, code, what = _join(path, missing["name"]), "missing_required_parameter", "expected a value, got none"
    field = _join(prefix, path) or "message"
    return Refusal(f"{field}: {what[0].lower()}{what[1:]}", code=code, field=field)


def _join(*parts: str) -> str:
    return ".".join(part for part in parts if part)
