"""The edge over a fake graph, with a real media worker: what a call needs."""

from collections.abc import AsyncIterator

import pytest_asyncio

from fakes.edge import Edge, ServeEdge
from realtime.media.client import MediaClient


@pytest_asyncio.fixture
async def media() -> AsyncIterator[MediaClient]:
    async with MediaClient(back_off_s=(0.0,)) as running:
        yield running


@pytest_asyncio.fixture
async def edge(serve_edge: ServeEdge, media: MediaClient) -> AsyncIterator[Edge]:
    """Afterwards the graph holds nothing, and no session is in use."""
    edge = await serve_edge(call_media=media)
    yield edge
    await edge.left_alone()
