"""kill -9 of the node that a page talks to, in mid-answer: the page goes on at the other one. Chromium, a front, two nodes, real
Redis."""

from pathlib import Path

import pytest
from playwright.async_api import expect

from browser.conftest import Browse
from browser.voice_page import VoicePage
from fakes.quick_nodes import quick_nodes
from fakes.redis_server import running_redis
from sessions.store.address import open_store

pytestmark = pytest.mark.timeout(120)

LEASE_S = 3.0
BACK_MS = 15_000


async def test_a_page_goes_on_at_the_other_node(browse: Browse, tmp_path: Path) -> None:
    context = await browse()
    async with (
        running_redis(tmp_path / "redis") as redis,
        quick_nodes(tmp_path / "nodes", redis.url, nodes=2, times=40, lease_s=LEASE_S) as nodes,
        open_store(redis.url, LEASE_S) as store,
    ):
        page = await VoicePage.open(context, nodes.url)
        await page.call()
        (session,) = await store.sessions(None, "", 10)
        await page.write("anna")
        await page.shows("speaking")
        await nodes.kill(session.node)
        await page.told("session.created", 2, BACK_MS)
        await page.shows("listening", "voice", BACK_MS)  # the other node says that what was being played is over
        await expect(page.notice).to_be_hidden()
        (moved,) = await store.sessions(None, "", 10)
        assert (moved.record.session_id, moved.node != session.node) == (session.record.session_id, True)
        await page.write("berta")
        await expect(page.turns("assistant", "done").last).to_contain_text("berta.40", timeout=BACK_MS)
        await expect(page.turns("user")).to_have_count(2)
        await page.told("output_audio_buffer.started", 2)
        await page.hang_up()
