"""Who may speak to this server: Host, Origin and key.

A loopback server is reachable from every web page its user opens, either directly or through a name that is rebound to
127.0.0.1. So a request must name a host of ours, and a page must be of our origin or of one that the operator allows. Behind
a proxy these are judged as the client wrote them.
"""

import hmac
import ipaddress
from typing import Literal, cast
from urllib.parse import urlsplit

from aiohttp import hdrs, web
from aiohttp.typedefs import Handler

from realtime.context import CONTEXT, AppContext
from realtime.errors import Forbidden, Refusal, Unauthorized, shown
from realtime.forwarded import CALLER, Caller, caller
from realtime.handed import end_of
from realtime.settings import API_KEY_VARIABLE, ServerSettings

KEY_PROTOCOL = "openai-insecure-api-key."
"""Browsers cannot set headers on a WebSocket; they offer the key as a subprotocol."""
GUARDED_PREFIX = "/v1/"
_NO_HOST = frozenset("@/?#\\")
"""With one of these in it a Host is the name of something else to one reader or another."""
_DEFAULT_PORTS = {"http": ":80", "https": ":443"}
_ALLOWED_METHODS = "GET, POST, PATCH, DELETE, OPTIONS"
_ALLOWED_HEADERS = "authorization, content-type, if-match, x-openai-agents-sdk"
_EXPOSED_HEADERS = "Location, ETag, Link, Retry-After"


class ExposureRefused(ValueError):
    """The server would be open to strangers."""


def check_exposure(settings: ServerSettings, api_key: str | None) -> None:
    """Without a key only this machine may connect, and that only without a proxy in between. Raises ExposureRefused."""
    if api_key is None and not is_loopback(settings.host):
        raise ExposureRefused(
            f"--host {settings.host} would let other machines in without a key: set {API_KEY_VARIABLE}, or bind 127.0.0.1"
        )
    if api_key is None and settings.trusted_proxies:
        raise ExposureRefused(
            f"server.trusted_proxies: a proxy on {settings.trusted_proxies[0]} would let other machines in without a key: "
            f"set {API_KEY_VARIABLE}"
        )


def is_loopback(host: str) -> bool:
    name = host.rstrip(".").lower()
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


@web.middleware
async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
    context = request.app[CONTEXT]
    screen(request, context.settings)
    if _is_preflight(request):
        return web.Response(status=204)
    if context.api_key is not None and request.path.startswith(GUARDED_PREFIX):
        _check_key(request, context.api_key)
    return await handler(request)


def screen(request: web.Request, settings: ServerSettings) -> None:
    """Lets nobody in by another's web page, and notes who calls. Raises Refusal."""
    who = request[CALLER] = caller(_connected(request), request.headers, settings.trusted_proxies)
    _check_host(request, who, settings)
    _check_origin(request, who, settings)


async def allow_origin(request: web.Request, response: web.StreamResponse) -> None:
    """Signal handler: lets pages of configured origins read what they asked for."""
    context: AppContext = request.app[CONTEXT]
    origin = request.headers.get(hdrs.ORIGIN)
    if origin is None or origin not in context.settings.allowed_origins:
        return
    response.headers[hdrs.ACCESS_CONTROL_ALLOW_ORIGIN] = origin
    response.headers[hdrs.ACCESS_CONTROL_EXPOSE_HEADERS] = _EXPOSED_HEADERS
    response.headers.add(hdrs.VARY, "Origin")
    if _is_preflight(request):
        response.headers[hdrs.ACCESS_CONTROL_ALLOW_METHODS] = _ALLOWED_METHODS
        response.headers[hdrs.ACCESS_CONTROL_ALLOW_HEADERS] = _ALLOWED_HEADERS
        response.headers[hdrs.ACCESS_CONTROL_MAX_AGE] = "600"


def _connected(request: web.Request) -> Caller:
    """Who is at the other end of the connection, and how it addresses us."""
    named = request.headers.getall(hdrs.HOST, [])
    if len(named) != 1:
        raise Refusal(f"Host: expected one header, got {len(named)}", code="invalid_host", field="Host")
    return Caller(_address(request, "peername"), "https" if end_of(request) else request.scheme, named[0])


def _check_host(request: web.Request, who: Caller, settings: ServerSettings) -> None:
    """Raises Forbidden when no host of ours is named."""
    name = _host_name(who.host)
    # The address that the client connected to is ours: it cannot be rebound as a name can.
    ours = {settings.host.lower(), *(allowed.lower() for allowed in settings.allowed_hosts), _address(request, "sockname")}
    if name == "" or not (is_loopback(name) or name in ours):
        raise Forbidden(f"Host: this server does not answer to {shown(who.host)}; add it to server.allowed_hosts", code="host")


def _host_name(host: str) -> str:
    """Without port, brackets and a last dot; empty when it is no host."""
    if _NO_HOST & set(host):
        return ""
    try:
        return (urlsplit(f"//{host}").hostname or "").rstrip(".")
    except ValueError:
        return ""


def _address(request: web.Request, end: Literal["peername", "sockname"]) -> str:
    if request.transport is None:
        return ""
    if (handed := end_of(request)) is not None:
        return handed.client if end == "peername" else handed.server
    address = cast("tuple[str, int] | None", request.transport.get_extra_info(end))
    return address[0] if address else ""


def _check_origin(request: web.Request, who: Caller, settings: ServerSettings) -> None:
    origin = request.headers.get(hdrs.ORIGIN)
    if origin is None:
        # A page can also ask without naming its origin (an image, a script); the browser still says that it is another's.
        if request.headers.get("Sec-Fetch-Site", "none") not in ("none", "same-origin") and not _follows_link(request):
            raise Forbidden("Sec-Fetch-Site: pages of other origins may not call this server", code="origin")
        return
    if origin not in settings.allowed_origins and not _is_own(origin, who):
        raise Forbidden(
            f"Origin: pages of {shown(origin)} may not call this server; add it to server.allowed_origins", code="origin"
        )


def _follows_link(request: web.Request) -> bool:
    """A person comes here from another page, which sees nothing of what is answered. Frames are not meant."""
    kind = (request.headers.get("Sec-Fetch-Mode"), request.headers.get("Sec-Fetch-Dest"))
    return request.method == hdrs.METH_GET and kind == ("navigate", "document") and not request.path.startswith(GUARDED_PREFIX)


def _is_own(origin: str, who: Caller) -> bool:
    """Whether a page that came from here has this origin. An https one also where we see http: a proxy that we know nothing of
    may stand between."""
    try:
        scheme, authority = urlsplit(origin)[:2]
    except ValueError:
        return False
    if authority == "" or scheme not in ("https", who.scheme):
        return False
    port = _DEFAULT_PORTS[scheme]
    return authority.lower().removesuffix(port) == who.host.lower().removesuffix(port)


def _is_preflight(request: web.Request) -> bool:
    return request.method == hdrs.METH_OPTIONS and hdrs.ACCESS_CONTROL_REQUEST_METHOD in request.headers


def _check_key(request: web.Request, expected: str) -> None:
    given = _given_key(request)
    if given is None:
        raise Unauthorized(f"Authorization: expected 'Bearer' and the key that the server was started with ({API_KEY_VARIABLE})")
    if not hmac.compare_digest(_raw(given), _raw(expected)):
        raise Unauthorized("Authorization: this key is not valid here")


def _raw(text: str) -> bytes:
    """The bytes of a header or an environment variable, which need not be UTF-8."""
    return text.encode(errors="surrogateescape")


def _given_key(request: web.Request) -> str | None:
    scheme, _, key = request.headers.get(hdrs.AUTHORIZATION, "").partition(" ")
    if scheme.lower() == "bearer" and key.strip():
        return key.strip()
    for offer in request.headers.get(hdrs.SEC_WEBSOCKET_PROTOCOL, "").split(","):
        if offer.strip().startswith(KEY_PROTOCOL):
            return offer.strip().removeprefix(KEY_PROTOCOL)
    return None
