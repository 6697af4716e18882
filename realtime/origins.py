"""Which pages may call: Host and Origin.

A loopback server is reachable from every web page its user opens, either directly or through a name that is rebound to
127.0.0.1. So a request must name a host of ours, and a page must be of our origin or of one that the operator, or its key,
allows. Behind a proxy these are judged as the client wrote them.
"""

import ipaddress
from typing import Literal, cast
from urllib.parse import urlsplit

from aiohttp import hdrs, web

from realtime.context import CONTEXT, AppContext
from realtime.errors import Forbidden, Refusal, shown
from realtime.forwarded import CALLER, Caller, caller
from realtime.handed import end_of
from realtime.settings import ServerSettings

GUARDED_PREFIX = "/v1/"
READABLE = web.RequestKey("readable", bool)
"""Pages of all origins may read the answer: without a key there is nothing in it."""
_NO_HOST = frozenset("@/?#\\")
"""With one of these in it a Host is the name of something else to one reader or another."""
_DEFAULT_PORTS = {"http": ":80", "https": ":443"}
_ALLOWED_METHODS = "GET, POST, PATCH, DELETE, OPTIONS"
_ALLOWED_HEADERS = "authorization, content-type, if-match, x-openai-agents-sdk"
_EXPOSED_HEADERS = "Location, ETag, Link, Retry-After"


def is_loopback(host: str) -> bool:
    name = host.rstrip(".").lower()
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def screen(request: web.Request, settings: ServerSettings) -> None:
    """Lets nobody in by another's web page, and notes who calls. Raises Refusal."""
    note_caller(request, settings)
    check_origin(request, settings)


def note_caller(request: web.Request, settings: ServerSettings) -> None:
    """Raises Refusal when no host of ours is named."""
    who = request[CALLER] = caller(_connected(request), request.headers, settings.trusted_proxies)
    name = _host_name(who.host)
    # The address that the client connected to is ours: it cannot be rebound as a name can.
    ours = {settings.host.lower(), *(allowed.lower() for allowed in settings.allowed_hosts), _address(request, "sockname")}
    if name == "" or not (is_loopback(name) or name in ours):
        raise Forbidden(f"Host: this server does not answer to {shown(who.host)}; add it to server.allowed_hosts", code="host")


def check_origin(request: web.Request, settings: ServerSettings, named: tuple[str, ...] = ()) -> None:
    """`named`: the origins whose pages the key is for, in place of ours and the operator's. A program that names no origin
    passes: it could name any. Raises Forbidden."""
    origin = request.headers.get(hdrs.ORIGIN)
    if origin is None:
        # A page can also ask without naming its origin (an image, a script); the browser still says that it is another's.
        if request.headers.get("Sec-Fetch-Site", "none") not in ("none", "same-origin") and not _follows_link(request):
            raise Forbidden("Sec-Fetch-Site: pages of other origins may not call this server", code="origin")
        return
    if named and origin not in named:
        raise Forbidden(f"Origin: this key is not for pages of {shown(origin)}", code="origin")
    if not named and origin not in settings.allowed_origins and not _is_own(origin, request[CALLER]):
        raise Forbidden(
            f"Origin: pages of {shown(origin)} may not call this server; add it to server.allowed_origins", code="origin"
        )


def is_preflight(request: web.Request) -> bool:
    return request.method == hdrs.METH_OPTIONS and hdrs.ACCESS_CONTROL_REQUEST_METHOD in request.headers


async def allow_origin(request: web.Request, response: web.StreamResponse) -> None:
    """Signal handler: lets pages of other origins read what they asked for, where they may."""
    context: AppContext = request.app[CONTEXT]
    origin = request.headers.get(hdrs.ORIGIN)
    if origin is None or not (origin in context.settings.allowed_origins or request.get(READABLE)):
        return
    response.headers[hdrs.ACCESS_CONTROL_ALLOW_ORIGIN] = origin
    response.headers[hdrs.ACCESS_CONTROL_EXPOSE_HEADERS] = _EXPOSED_HEADERS
    response.headers.add(hdrs.VARY, "Origin")
    if is_preflight(request):
        response.headers[hdrs.ACCESS_CONTROL_ALLOW_METHODS] = _ALLOWED_METHODS
        response.headers[hdrs.ACCESS_CONTROL_ALLOW_HEADERS] = _ALLOWED_HEADERS
        response.headers[hdrs.ACCESS_CONTROL_MAX_AGE] = "600"


def _connected(request: web.Request) -> Caller:
    """Who is at the other end of the connection, and how it addresses us."""
    named = request.headers.getall(hdrs.HOST, [])
    if len(named) != 1:
        raise Refusal(f"Host: expected one header, got {len(named)}", code="invalid_host", field="Host")
    return Caller(_address(request, "peername"), "https" if end_of(request) else request.scheme, named[0])


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
