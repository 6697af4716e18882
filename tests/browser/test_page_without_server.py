"""What the page says when its server is full, goes away and comes back. The edge over a fake graph, in Chromium."""

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


@pytest_asyncio.fixture
async def media() -> AsyncIterator[MediaClient]:
    async with MediaClient(back_off_s=(0.0,)) as running:
        yield running


async def test_a_restarted_server_ends_the_call_and_a_new_one_works(browse: Browse, media: MediaClient) -> None:
    context = await browse()
    async with serving(edge_context(FakeGraph(), call_media=media)) as url:
        page = await VoicePage.open(context, url)
        await page.call()
    await expect(page.notice).to_have_attribute("data-problem", "reconnecting")
    edge = edge_context(FakeGraph(), call_media=media)
    async with serving(edge, port=int(url.rpartition(":")[2])):
        await expect(page.notice).to_have_attribute("data-problem", "resume_refused", timeout=20_000)
        await page.call()
        await page.write("What is the capital of France?")
        await expect(page.turns("assistant", "done").last).to_contain_text("Paris")
        edge.drain.begin()  # it says that it is about to stop
        await expect(page.notice).to_have_attribute("data-problem", "server_stopped")
        await page.shows("error", "none")


async def test_a_full_server_without_a_line_says_so_and_takes_the_next_call_when_a_seat_is_free(
    browse: Browse, media: MediaClient
) -> None:
    context = await browse()
    limits, admission = SessionLimits(maximum_sessions=1), AdmissionSettings(longest_queue=0)
    edge = edge_context(FakeGraph(), call_media=media, limits=limits, admission=admission)
    async with serving(edge) as url:
        first, second = await VoicePage.open(context, url), await VoicePage.open(context, url)
        await first.call()
        await second.start.click()
        await expect(second.notice).to_have_attribute("data-problem", "full")
        await expect(second.notice).to_contain_text("seats")
        await first.hang_up()
        await second.page.get_by_role("button", name="Try again").click()
        await second.shows("listening", "voice")
        await second.hang_up()
    assert edge.voice_sessions.sessions() == ()
