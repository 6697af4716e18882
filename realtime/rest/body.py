"""JSON bodies into records; what is wrong is told with the field's name, what was expected and what came."""

import re
from typing import TypeVar, cast

import msgspec
from aiohttp import web

from realtime.errors import Refusal, shown
from realtime.rest.receiving import whole_body

T = TypeVar("T", bound=msgspec.Struct)

_WRONG = re.compile(r"^Expected (?P<expected>.*?)(?:, got .*)?$")
_OUT_OF_RANGE = ("number out of range", "integer value out of range")
_MISSING = re.compile(r"^Object missing required field `(?P<name>.*)`$")


async def read_json(request: web.Request, shape: type[T]) -> T:
    """Raises Refusal (400; 408 and 413 by its length)."""
    body = await whole_body(request)
    try:
        return msgspec.json.decode(body, type=shape)
    except msgspec.ValidationError as wrong:
        raise wrong_field(str(wrong), body) from wrong
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as broken:
        raise Refusal(f"body: expected a JSON object, got {shown(body[:80])} ({broken})", code="invalid_json") from broken


def wrong_field(complaint: str, body: bytes) -> Refusal:
    """msgspec's complaint in our words: `field: expected this, got that`."""
    text, _, path = complaint.partition(" - at `$")
    field = path.rstrip("`").removeprefix(".")
    text = text.replace("`", "")
    if missing := _MISSING.match(complaint.partition(" - at `$")[0]):
        field = f"{field}.{missing['name']}".removeprefix(".")
        return Refusal(f"{field}: expected a value, got none", code="missing_required_parameter", field=field)
    if text.lower() in _OUT_OF_RANGE:
        message = f"{field or 'body'}: expected a number that can be held, got one out of range"
        return Refusal(message, code="invalid_value", field=field or None)
    expected = _WRONG.match(text)
    message = f"expected {expected['expected']}, got {_shown_at(body, field)}" if expected else f"{text[0].lower()}{text[1:]}"
    return Refusal(f"{field or 'body'}: {message}", code="invalid_value", field=field or None)


def _shown_at(body: bytes, field: str) -> str:
    try:
        return shown(_value_at(msgspec.json.decode(body), field))
    except (msgspec.MsgspecError, RecursionError):
        return "a body that holds something else which cannot be read"


def _value_at(body: object, field: str) -> object:
    """`messages[0].role` of a decoded body."""
    value = body
    for name, index in re.findall(r"([^.\[\]]+)|\[(\d+)\]", field):
        if index:
            value = cast("list[object]", value)[int(index)]
        elif isinstance(value, dict):
            value = cast("dict[str, object]", value).get(name)
    return value
