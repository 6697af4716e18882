"""Connections that came over TLS to the front of several nodes: a node has only their bytes, and is told where they came from."""

import asyncio
from typing import TypeAlias
from weakref import WeakKeyDictionary

import msgspec
from aiohttp import web


class End(msgspec.Struct, frozen=True, array_like=True):
    """Addresses, without ports, of both ends of the connection."""

    client: str
    server: str


Ends: TypeAlias = WeakKeyDictionary[asyncio.BaseTransport, End]
ENDS = web.AppKey("ends", Ends)
"""Of the connections that were handed over so; an application without a front has none."""


def end_of(request: web.Request) -> End | None:
    """None: the connection is the client's own, or has gone."""
    ends = request.app.get(ENDS)
    # uvloop's transports of TLS take no weak reference; what was handed over is no such transport.
    return ends.get(request.transport) if ends and request.transport is not None else None
