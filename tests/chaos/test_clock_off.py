"""A node whose wall clock is off by five minutes: leases and fences go by the store's, and by what has passed."""

import time
from contextlib import AsyncExitStack
from pathlib import Path

import aiohttp
import pytest

from fakes.faithful_client import FaithfulClient
from fakes.quick_nodes import quick_nodes
from fakes.redis_server import running_redis

pytestmark = [pytest.mark.full, pytest.mark.timeout(120)]

LEASE_S = 3.0
AT_LATEST_S = 3.0
"""After the end of the lease; a busy machine."""


@pytest.mark.parametrize("ahead_s", [(300.0, 0.0), (0.0, 300.0), (-300.0, 0.0), (0.0, -300.0)])
async def test_a_session_moves_when_its_lease_is_over(tmp_path: Path, ahead_s: tuple[float, float]) -> None:
    """From the first server, which is killed, to the second one."""
    async with AsyncExitStack() as stack:
        redis = await stack.enter_async_context(running_redis(tmp_path / "redis"))
        http = await stack.enter_async_context(aiohttp.ClientSession())
        one, two = [
            await stack.enter_async_context(quick_nodes(tmp_path / name, redis.url, times=200, lease_s=LEASE_S, ahead_s=ahead))
            for name, ahead in zip(("one", "two"), ahead_s, strict=True)
        ]
        client = FaithfulClient(http, "anna")
        await client.connect(one.url)
        await client.introduce()
        await client.ask()
        await client.hears(10)
        one.served.process.kill()
        killed_at = time.monotonic()
        await client.gone()
        await client.come_back(two.url)
        moved_s = client.first_event_at - killed_at
        assert LEASE_S / 2 < moved_s < LEASE_S + AT_LATEST_S
        await client.all_answered()
        await client.ask()
        await client.hears(10)
        assert (client.heard.lost, client.heard.duplicated, client.resyncs) == (0, 0, 0)
