"""What a client posts to begin a call: an SDP offer, and maybe what its session is to be."""

import msgspec
from aiohttp import BodyPartReader, web
from aiohttp.http import HttpProcessingError

from realtime.errors import Refusal, shown
from realtime.openai_realtime.client_events import field_refusal
from realtime.openai_realtime.session_patch import SessionPatch
from realtime.rest.receiving import arriving

MAX_BODY_BYTES = 256 << 10
READ_BYTES = 16 << 10
FORM = "multipart/form-data"
SDP = "application/sdp"
FRAGMENT = "application/trickle-ice-sdpfrag"


class CallBody(msgspec.Struct, frozen=True):
    sdp: str
    session: SessionPatch = SessionPatch()


async def read_call_body(request: web.Request) -> CallBody:
    """Bare SDP, or a form with the fields `sdp` and, as JSON, `session`. Raises Refusal."""
    match request.content_type:
        case "application/sdp":
            return CallBody(_text("body", await _whole(request)))
        case "multipart/form-data":
            return _from_form(await _fields(request))
        case other:
            raise _wrong_type(f"{SDP} or {FORM}", other)


async def read_fragment_body(request: web.Request) -> bytes:
    """Of a PATCH. Raises Refusal."""
    if request.content_type != FRAGMENT:
        raise _wrong_type(FRAGMENT, request.content_type)
    return await _whole(request)


def _wrong_type(expected: str, got: str) -> Refusal:
    message = f"Content-Type: expected {expected}, got {shown(got)}"
    return Refusal(message, status=415, code="invalid_content_type", field="Content-Type")


def _from_form(fields: dict[str, bytes]) -> CallBody:
    if "sdp" not in fields:
        got = ", ".join(map(shown, fields)) or "nothing"
        raise Refusal(f"sdp: expected the SDP offer in a field of this name, got {got}", code="invalid_offer", field="sdp")
    session = _session(fields["session"]) if "session" in fields else SessionPatch()
    return CallBody(_text("sdp", fields["sdp"]), session)


def _session(value: bytes) -> SessionPatch:
    try:
        return msgspec.json.decode(value, type=SessionPatch)
    except msgspec.ValidationError as wrong:
        raise field_refusal(wrong, "session") from wrong
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as broken:
        raise Refusal(f"session: expected a JSON object, got {broken}", code="invalid_json", field="session") from broken


def _text(field: str, value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError as broken:
        raise Refusal(f"{field}: expected SDP in UTF-8, got other bytes", code="invalid_offer", field="sdp") from broken


async def _whole(request: web.Request) -> bytes:
    body = bytearray()
    while data := await arriving(request, request.content.readany()):
        body += data
        _check_size(len(body))
    return bytes(body)


async def _fields(request: web.Request) -> dict[str, bytes]:
    try:
        return await _read_fields(request)
    except (ValueError, HttpProcessingError) as broken:
        message = f"body: expected {FORM}, got something broken ({broken})"
        raise Refusal(message, code="invalid_body") from broken


async def _read_fields(request: web.Request) -> dict[str, bytes]:
    fields: dict[str, bytes] = {}
    size = 0
    parts = await request.multipart()
    while (part := await arriving(request, parts.next())) is not None:
        if not isinstance(part, BodyPartReader):
            raise Refusal("body: expected plain fields, got a form within the form", code="invalid_body")
        value = bytearray()
        size += len(part.name or "")
        while data := await arriving(request, part.read_chunk(READ_BYTES)):
            value += data
            _check_size(size + len(value))
        size += len(value) + 1
        _check_size(size)
        fields[part.name or ""] = bytes(value)
    return fields


def _check_size(size: int) -> None:
    if size > MAX_BODY_BYTES:
        message = f"body: expected at most {MAX_BODY_BYTES} bytes, got more"
        raise Refusal(message, status=413, code="request_entity_too_large")
