"""The REST endpoints over a fake graph and a real media worker, and the stock client pointed at them."""

from collections.abc import AsyncIterator

import aiohttp
import openai
import pytest
import pytest_asyncio

from fakes.edge import Edge, ServeEdge
from realtime.media.client import MediaClient
from realtime.metrics import Metrics
from realtime.settings import ServerSettings

MAX_BODY_BYTES = 4 << 20


@pytest_asyncio.fixture
async def media() -> AsyncIterator[MediaClient]:
    async with MediaClient(back_off_s=(0.0,)) as running:
        yield running


@pytest.fixture
def metrics() -> Metrics:
    return Metrics()


@pytest_asyncio.fixture
async def edge(serve_edge: ServeEdge, media: MediaClient, metrics: Metrics) -> Edge:
    settings = ServerSettings(max_body_bytes=MAX_BODY_BYTES)
    return await serve_edge(settings=settings, media=media, metrics=metrics)


@pytest_asyncio.fixture
async def http(edge: Edge) -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(edge.url) as session:
        yield session


@pytest_asyncio.fixture
async def client(edge: Edge) -> AsyncIterator[openai.AsyncOpenAI]:
    async with openai.AsyncOpenAI(base_url=f"{edge.url}/v1", api_key="none", max_retries=0) as stock:
        yield stock
