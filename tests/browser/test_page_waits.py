"""A page that finds all seats taken waits in line, says where it stands, and is let in by itself. Chromium, and the edge over a
fake."""

import re
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from playwright.async_api import expect

from browser.conftest import Browse
from browser.voice_page import VoicePage
from fakes.edge import edge_context, serving
from fakes.graph import FakeGraph
from realtime.media.client import MediaClient
from sessions.admission.settings import AdmissionSettings
from sessions.retention.settings import SessionLimits

pytestmark = pytest.mark.timeout(90)

IN_MS = 15_000
NEXT = re.compile(r"About \d+ s\. You are let in|All seats are taken\. You are let in")


@pytest_asyncio.fixture
async def media() -> AsyncIterator[MediaClient]:
    async with MediaClient(back_off_s=(0.0,)) as running:
        yield running


async def test_two_who_wait_are_let_in_one_after_the_other_by_voice_and_by_text(browse: Browse, media: MediaClient) -> None:
    context = await browse()
    edge = edge_context(FakeGraph(), call_media=media, limits=SessionLimits(maximum_sessions=1), admission=AdmissionSettings())
    async with serving(edge) as url:
        talks, waits, writes = [await VoicePage.open(context, url) for _ in range(3)]
        await talks.call()
        await waits.start.click()
        await expect(waits.page.locator("#now")).to_have_text("You are next")
        await expect(waits.page.locator("#now-detail")).to_have_text(NEXT)
        await writes.message.fill("What is the capital of France?")
        await writes.message.press("Enter")
        await expect(writes.page.locator("#now")).to_have_text("2nd in line")
        await expect(writes.stop).to_be_visible()
        await talks.hang_up()
        await waits.shows("listening", "voice", IN_MS)
        await expect(writes.page.locator("#now")).to_have_text("You are next", timeout=IN_MS)
        await waits.hang_up()
        await writes.shows("listening", "text", IN_MS)
        await expect(writes.turns("assistant", "done")).to_contain_text("Paris")
        await writes.hang_up()
        assert (await edge.store.census()).waiting == 0


@pytest.mark.full
async def test_who_stops_waiting_leaves_the_line(browse: Browse, media: MediaClient) -> None:
    context = await browse()
    settings = AdmissionSettings(place_s=3)
    edge = edge_context(FakeGraph(), call_media=media, limits=SessionLimits(maximum_sessions=1), admission=settings)
    async with serving(edge) as url:
        talks, waits, other = [await VoicePage.open(context, url) for _ in range(3)]
        await talks.call()
        await waits.start.click()
        await expect(waits.page.locator("#now")).to_have_text("You are next")
        await other.start.click()
        await expect(other.page.locator("#now")).to_have_text("2nd in line")
        await waits.hang_up()
        await waits.shows("idle", "none")
        await expect(other.page.locator("#now")).to_have_text("You are next", timeout=IN_MS)
        await other.page.close()
        await talks.hang_up()
