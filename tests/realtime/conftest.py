"""The edge over a fake graph, on a real server on loopback."""

import ssl
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import pytest_asyncio

from fakes.edge import Edge, ServeEdge, edge_context, serving
from fakes.graph import FakeGraph
from realtime.tls import Certificate


@pytest.fixture
def graph() -> FakeGraph:
    return FakeGraph()


@pytest_asyncio.fixture
async def serve_edge(graph: FakeGraph) -> AsyncIterator[ServeEdge]:
    """`await serve_edge(settings=…, api_key=…)`: an edge whose context differs from the default. With a `certificate` it
    speaks TLS, and its client trusts the file `trust`."""
    async with AsyncExitStack() as stack:

        async def serve(certificate: Certificate | None = None, trust: Path | None = None, **changes: Any) -> Edge:
            context = edge_context(graph, **changes)
            url = await stack.enter_async_context(serving(context, certificate=certificate))
            connector = aiohttp.TCPConnector(ssl=ssl.create_default_context(cafile=trust))
            http = await stack.enter_async_context(aiohttp.ClientSession(connector=connector))
            return Edge(context, graph, url, http)

        yield serve


@pytest_asyncio.fixture
async def edge(serve_edge: ServeEdge) -> Edge:
    return await serve_edge()
