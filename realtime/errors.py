"""The OpenAI error shape, and the one funnel through which every REST failure becomes a response."""

import logging
from typing import TypeAlias

import msgspec
from aiohttp import web
from aiohttp.typedefs import Handler
from msgspec import UNSET, UnsetType

from engines.messages.to_gateway import ErrorKind
from engines.requests import RequestFailed
from sessions.voice.commands import CommandRefused

log = logging.getLogger(__name__)

WHERE_TO_LOOK = "GET /v1/models lists the models, GET /readyz tells whether they are loaded, realtime/README.md names every path"
STARTED = web.RequestKey("started", bool)
"""Set once the head of a response has gone out: from then on a failure can only cut the connection."""

INVALID = "invalid_request_error"
SERVER = "server_error"
RATE_LIMIT = "rate_limit_error"
AUTHENTICATION = "authentication_error"
RETRY_AFTER_S = 2


class QueuePlace(msgspec.Struct, frozen=True, kw_only=True):
    """In the waiting room; `id` is what whoever asks again names, to hold it. `position` counts from 1; `estimate_s` None: nobody
    knows yet."""

    id: str
    position: int
    estimate_s: float | None


class ErrorBody(msgspec.Struct, frozen=True, kw_only=True):
    """`type` is the family, `code` the case, `param` the field in dotted form; `event_id`, on a WebSocket alone, the client event
    that caused it; `queue`, over HTTP alone, where the client stands."""

    message: str
    type: str = INVALID
    code: str | None = None
    param: str | None = None
    event_id: str | UnsetType | None = UNSET
    queue: QueuePlace | UnsetType = UNSET


class Refusal(Exception):
    """The caller's fault, or ours in a known way: `status` is the HTTP status that says so."""

    def __init__(
        self,
        message: str,
        *,
        status: int = 400,
        code: str | None = None,
        field: str | None = None,
        type: str = INVALID,
        retry_after_s: int | None = None,
        queue: QueuePlace | UnsetType = UNSET,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.retry_after_s = retry_after_s
        self.body = ErrorBody(message=message, type=type, code=code, param=field, queue=queue)

    def response(self) -> web.Response:
        headers = {} if self.retry_after_s is None else {"Retry-After": str(self.retry_after_s)}
        body = msgspec.json.encode({"error": self.body})
        response = web.Response(status=self.status, body=body, content_type="application/json", headers=headers)
        if self.status == web.HTTPRequestTimeout.status_code:
            response.force_close()  # or the rest of the body would be waited for
        return response


class Unauthorized(Refusal):
    def __init__(self, message: str) -> None:
        super().__init__(message, status=401, code="invalid_api_key", type=AUTHENTICATION)


class Forbidden(Refusal):
    def __init__(self, message: str, *, code: str, field: str | None = None) -> None:
        super().__init__(message, status=403, code=code, field=field, type="permission_error")


class Invalid(Refusal):
    """A field holds what it may not hold."""

    def __init__(self, field: str, expected: str, got: object, *, code: str = "invalid_value") -> None:
        super().__init__(f"{field}: expected {expected}, got {shown(got)}", code=code, field=field)


class UnknownModel(Refusal):
    """`known` are the models that do this work here."""

    def __init__(self, got: str, known: tuple[str, ...], work: str) -> None:
        expected = f"{' or '.join(known)} for {work}" if known else f"one for {work}, of which this deployment has none"
        message = f"model: expected {expected}, got {shown(got)}"
        super().__init__(message, status=404, code="model_not_found", field="model")


class UnknownVoice(Refusal):
    def __init__(self, field: str, got: object, known: tuple[str, ...]) -> None:
        super().__init__(f"{field}: expected one of {', '.join(known)}, got {shown(got)}", code="unknown_voice", field=field)


def shown(value: object, limit: int = 80) -> str:
    """`value` as it may stand in a message: quoted, and cut when long."""
    try:
        text = repr(value)
    except RecursionError:
        return "something nested too deeply to be shown"
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


_STATUS_OF_KIND: dict[ErrorKind, tuple[int, str, int | None]] = {
    ErrorKind.INVALID: (400, INVALID, None),
    ErrorKind.ENGINE: (500, SERVER, None),
    ErrorKind.OVERLOADED: (503, SERVER, RETRY_AFTER_S),
    ErrorKind.REPLICA_LOST: (503, SERVER, RETRY_AFTER_S),
}

_SAME = (
    "messages",
    "language",
    "voice",
    "prompt",
    "negative_prompt",
    "steps",
    "guidance",
    "sampler",
    "strength",
    "frames",
    "image",
    "mask",
)
FIELDS_OF_ENGINES = {
    **{name: name for name in _SAME},
    **dict.fromkeys(("width", "height", "width, height"), "size"),
    **dict.fromkeys(("image width", "image height"), "image"),
    "previews": "partial_images",
}
"""What stands at the beginning of an engine's refusal, as clients call it."""

Known: TypeAlias = Refusal | RequestFailed | CommandRefused | msgspec.MsgspecError


def refusal(failure: Known) -> Refusal:
    """How a known failure is told to a client."""
    match failure:
        case Refusal():
            return failure
        case RequestFailed():
            return _from_engine(failure)
        case CommandRefused():
            return Refusal(failure.message, code=failure.code, field=failure.field)
        case msgspec.MsgspecError():
            return Refusal(f"body: {failure}", code="invalid_json" if type(failure) is msgspec.DecodeError else "invalid_value")


def _from_engine(failure: RequestFailed) -> Refusal:
    """A fault of a field is told like any other: its name comes first."""
    status, family, retry_after_s = _STATUS_OF_KIND[failure.kind]
    field = _client_field(failure.message.partition(":")[0]) if failure.kind is ErrorKind.INVALID else None
    message = str(failure) if field is None else failure.message
    return Refusal(message, status=status, type=family, code=failure.kind.value, field=field, retry_after_s=retry_after_s)


def _client_field(named: str) -> str | None:
    """`image[1]` is one of `image`."""
    name, bracket, index = named.partition("[")
    known = FIELDS_OF_ENGINES.get(name)
    return None if known is None else known + bracket + index


@web.middleware
async def funnel(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Every exception of a handler ends here, and nowhere else."""
    try:
        return await handler(request)
    except web.HTTPException as http:
        if http.status < 400:
            raise
        outcome = _from_http(http, request)
    except (Refusal, RequestFailed, CommandRefused, msgspec.MsgspecError) as failure:
        outcome = refusal(failure)
    except Exception:
        log.exception("unexpected failure in %s %s", request.method, request.path)
        outcome = Refusal("the server failed; its log tells how", status=500, type=SERVER, code="internal_error")
    if request.get(STARTED):
        raise ConnectionResetError(f"the response had begun when it failed: {outcome}")
    return outcome.response()


async def mark_started(request: web.Request, _response: web.StreamResponse) -> None:
    """Signal handler: see STARTED."""
    request[STARTED] = True


def _from_http(http: web.HTTPException, request: web.Request) -> Refusal:
    match http:
        case web.HTTPNotFound():
            message = f"there is nothing at {shown(request.path)}; {WHERE_TO_LOOK}"
        case web.HTTPMethodNotAllowed():
            message = f"{request.path} takes {', '.join(sorted(http.allowed_methods))}, not {request.method}"
        case web.HTTPRequestEntityTooLarge():
            message = f"body: {http.text or http.reason}"
        case _:
            message = http.text or http.reason
    return Refusal(message, status=http.status, code=http.reason.lower().replace(" ", "_"))
