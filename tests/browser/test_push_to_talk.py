"""With push to talk nothing is heard but what is said while the button or the space bar is held. The edge over a fake graph."""

from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
import pytest_asyncio
from playwright.async_api import expect

from browser.conftest import Browse
from browser.voice_page import VoicePage
from fakes.edge import edge_context, serving
from fakes.graph import FakeGraph
from realtime.media.client import MediaClient
from recordings import Utterance

pytestmark = pytest.mark.timeout(90)

HEARD_MS = 15_000


@pytest_asyncio.fixture
async def calling(browse: Browse, question: Utterance) -> AsyncIterator[Callable[[], Awaitable[VoicePage]]]:
    """A page in a call, someone asks again and again; push to talk has been switched on before it."""
    async with MediaClient(back_off_s=(0.0,)) as media, serving(edge_context(FakeGraph(), call_media=media)) as url:
        context = await browse(*[(question, 1.0)] * 12)

        async def call() -> VoicePage:
            page = await VoicePage.open(context, url)
            if await page.push_to_talk.get_attribute("aria-pressed") == "false":
                await page.push_to_talk.click()
            await page.call()
            return page

        yield call


async def test_only_what_is_said_while_space_is_held_is_heard(calling: Callable[[], Awaitable[VoicePage]]) -> None:
    page = await calling()
    await expect(page.main).to_have_attribute("data-microphone", "closed")
    await spoken_meanwhile(page)
    assert await page.turns("user").count() == 0
    since = await page.page.evaluate("ears.now()")
    await page.page.keyboard.down("Space")
    await expect(page.main).to_have_attribute("data-microphone", "open")
    await page.told("input_audio_buffer.speech_started")
    await page.page.wait_for_function("since => ears.spoke(since) > 0.5", arg=since)  # the end of a word is no turn
    await page.page.keyboard.up("Space")
    await expect(page.main).to_have_attribute("data-microphone", "closed")
    await expect(page.turns("user", "done")).to_have_count(1, timeout=HEARD_MS)
    await expect(page.turns("assistant", "done")).to_contain_text("Paris", timeout=HEARD_MS)


async def test_the_button_is_held_by_mouse_or_key_and_space_keeps_its_other_meanings(
    calling: Callable[[], Awaitable[VoicePage]],
) -> None:
    await calling()
    page = await calling()  # in which it is remembered
    await expect(page.main).to_have_attribute("data-microphone", "closed")
    await page.hold.hover()
    await page.page.mouse.down()
    await expect(page.hold).to_have_attribute("aria-pressed", "true")
    await page.page.mouse.move(5, 5)  # off the button, and still held
    await expect(page.main).to_have_attribute("data-microphone", "open")
    await page.page.mouse.up()
    await expect(page.main).to_have_attribute("data-microphone", "closed")
    await page.message.press("Space")
    await expect(page.message).to_have_value(" ")
    await page.hold.focus()
    await page.page.keyboard.down("Space")
    await expect(page.main).to_have_attribute("data-microphone", "open")
    await page.page.evaluate("window.dispatchEvent(new Event('blur'))")  # the release would be elsewhere
    await expect(page.main).to_have_attribute("data-microphone", "closed")
    await page.page.keyboard.up("Space")
    for microphone in ("open", "closed"):  # who cannot hold presses twice
        await page.page.keyboard.press("Enter")
        await expect(page.main).to_have_attribute("data-microphone", microphone)
    await page.push_to_talk.focus()
    await page.page.keyboard.press("Space")
    await expect(page.push_to_talk).to_have_attribute("aria-pressed", "false")
    await expect(page.main).to_have_attribute("data-microphone", "open")
    await expect(page.hold).to_be_hidden()


async def spoken_meanwhile(page: VoicePage) -> None:
    """Until the file has said its question once, by the file's own clock."""
    await page.page.wait_for_function("since => ears.now() - since > 3", arg=await page.page.evaluate("ears.now()"))
