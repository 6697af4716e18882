"""The edge over a fake graph, on a real server on loopback."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any

import aiohttp
import pytest
import pytest_asyncio

from fakes.edge import Edge, ServeEdge, edge_context, serving
from fakes.graph import FakeGraph


@pytest.fixture
def graph() -> FakeGraph:
    return FakeGraph()


@pytest_asyncio.fixture
async def serve_edge(graph: FakeGraph) -> AsyncIterator[ServeEdge]:
    """`await serve_edge(settings=…, api_key=…)`: an edge whose context differs from the default."""
    async with AsyncExitStack() as stack:

        async def serve(**changes: Any) -> Edge:
            context = edge_context(graph, **changes)
            url = await stack.enter_async_context(serving(context))
            http = await stack.enter_async_context(aiohttp.ClientSession())
            return Edge(context, graph, url, http)

        yield serve


@pytest_asyncio.fixture
async def edge(serve_edge: ServeEdge) -> Edge:
    return await serve_edge()
