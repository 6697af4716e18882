"""Who calls, when a proxy stands between: RFC 7239's `Forwarded`, and the older `X-Forwarded-For`, `-Proto` and `-Host`.

Whoever connects may write these headers, so they are believed from the operator's own proxies alone, and read from the right:
each of them has appended what it saw, down to the first address that is no proxy of ours. What stands left of that is the
client's own invention.
"""

import functools
import ipaddress
import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeAlias

from aiohttp import web
from multidict import CIMultiDictProxy

from realtime.errors import Refusal, shown

Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address
Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network

FORWARDED, FOR, PROTO, HOST = "Forwarded", "X-Forwarded-For", "X-Forwarded-Proto", "X-Forwarded-Host"
_SCHEMES = {"http": "http", "https": "https", "ws": "http", "wss": "https"}
_PAIR = re.compile(r'[\s,]*([\w-]+)=(?:([^\s,;"]+)|"((?:[^"\\]|\\.)*)")\s*([,;]|$)', re.ASCII)
"""Of RFC 7239, but also without the quotes that it wants around a colon. Each alternative begins otherwise: linear in time."""
_BRACKETED = re.compile(r"\[([^\]]*)\](?::\w+)?", re.ASCII)


class Caller(NamedTuple):
    """`address` without port, `scheme` http or https, `host` as the client's Host header: with its port, when it names one."""

    address: str
    scheme: str
    host: str


CALLER = web.RequestKey("caller", Caller)
"""Set by the guard, before any handler."""


class _Told(NamedTuple):
    """What the headers say beyond the connection itself; None: nothing."""

    address: str | None = None
    scheme: str | None = None
    host: str | None = None


def caller(connection: Caller, headers: CIMultiDictProxy[str], trusted: tuple[str, ...]) -> Caller:
    """`connection` is who connects here. Raises Refusal (400) for what a proxy of ours has passed on and cannot be understood."""
    networks = trusted_networks(trusted)
    if not _is_trusted(connection.address, networks):
        return connection
    standard, older = _standard(headers, networks), _older(headers, networks)
    # A proxy that writes one of the two kinds passes the other on as the client wrote it.
    for a, b in zip(standard, older, strict=True):
        if a is not None and b is not None and a != b:
            raise _unclear(FORWARDED, "the same as the X-Forwarded headers", a)
    told = [a or b or c for a, b, c in zip(standard, older, connection, strict=True)]
    return Caller(*told)


@functools.cache
def trusted_networks(trusted: tuple[str, ...]) -> tuple[Network, ...]:
    """Raises ValueError for what is neither an address nor a network."""
    return tuple(ipaddress.ip_network(one) for one in trusted)


def _standard(headers: CIMultiDictProxy[str], networks: Sequence[Network]) -> _Told:
    hops = [element for line in headers.getall(FORWARDED, []) for element in _elements(line)]
    if not hops:
        return _Told()
    believed = _believed([hop.get("for", "") for hop in hops], networks)
    scheme = next((hop["proto"] for hop in hops[-believed:] if "proto" in hop), None)
    host = next((hop["host"] for hop in hops[-believed:] if "host" in hop), None)
    return _Told(_last_known(hop.get("for", "") for hop in hops[-believed:]), _scheme(FORWARDED, scheme), host)


def _older(headers: CIMultiDictProxy[str], networks: Sequence[Network]) -> _Told:
    hops = _listed(headers, FOR)
    believed = _believed(hops, networks)
    schemes, hosts = _listed(headers, PROTO)[-believed:], _listed(headers, HOST)[-believed:]
    scheme = _scheme(PROTO, schemes[0] if schemes else None)
    return _Told(_last_known(hops[-believed:]), scheme, hosts[0] if hosts else None)


def _believed(hops: Sequence[str], networks: Sequence[Network]) -> int:
    """How many entries, from the right, proxies of ours have written. At least one: the peer is one of them."""
    count = 1
    for hop in reversed(hops[1:]):
        if not _is_trusted(_address(hop) or "", networks):
            break
        count += 1
    return count


def _last_known(hops: Iterable[str]) -> str | None:
    """The outermost entry that is an address: proxies may also write `unknown`, or a name of their own choosing."""
    return next((address for hop in hops if (address := _address(hop)) is not None), None)


def _address(node: str) -> str | None:
    """`192.0.2.1`, `192.0.2.1:4711`, `2001:db8::1`, `[2001:db8::1]:4711`, all without their port."""
    node = node.strip()
    if bracketed := _BRACKETED.fullmatch(node):
        node = bracketed[1]
    elif node.count(":") == 1:
        node = node.partition(":")[0]
    address = _parsed(node)
    return None if address is None else str(address)


def _parsed(text: str) -> Address | None:
    """IPv4 as such also where it is written as IPv6, as a socket that listens to both does."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped
    return address


def _is_trusted(address: str, networks: Sequence[Network]) -> bool:
    parsed = _parsed(address)
    return parsed is not None and any(parsed in network for network in networks)


def _listed(headers: CIMultiDictProxy[str], name: str) -> list[str]:
    """A header may come several times, and hold several values each time."""
    values = [value.strip() for line in headers.getall(name, []) for value in line.split(",")]
    return [value for value in values if value]


def _elements(line: str) -> list[dict[str, str]]:
    """One for each proxy: `for=192.0.2.1;proto=https, for="[2001:db8::1]:4711"` are two."""
    elements: list[dict[str, str]] = [{}]
    at = 0
    while at < len(line):
        pair = _PAIR.match(line, at)
        if pair is None or pair[1].lower() in elements[-1]:
            raise _unclear(FORWARDED, "name=value pairs as in RFC 7239", line[at:])
        elements[-1][pair[1].lower()] = pair[2] or re.sub(r"\\(.)", r"\1", pair[3] or "")
        if pair[4] == ",":
            elements.append({})
        at = pair.end()
    return [element for element in elements if element]


def _scheme(field: str, given: str | None) -> str | None:
    if given is None:
        return None
    if (scheme := _SCHEMES.get(given.lower())) is None:
        raise _unclear(field, "http or https", given)
    return scheme


def _unclear(field: str, expected: str, got: str) -> Refusal:
    return Refusal(f"{field}: expected {expected}, got {shown(got)}", code="invalid_header", field=field)
