"""A running media worker, and sound to feed it."""

from collections.abc import AsyncIterator

import pytest_asyncio

from realtime.media.client import MediaClient


@pytest_asyncio.fixture
async def media() -> AsyncIterator[MediaClient]:
    async with MediaClient(back_off_s=(0.0,)) as running:
        yield running
