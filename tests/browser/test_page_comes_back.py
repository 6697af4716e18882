"""Lines that break, pages that are loaded again, tabs that meet: the conversation goes on. Chromium, and the edge over a fake."""

import asyncio
import re
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from playwright.async_api import Page, WebSocketRoute, expect

from browser.conftest import Browse
from browser.ears import Heard, heard, listened
from browser.network import Network
from browser.voice_page import VoicePage
from fakes.edge import edge_context, serving
from fakes.graph import MS_PER_CHARACTER, FakeGraph
from realtime.context import AppContext
from realtime.media.client import MediaClient
from sessions.retention.settings import SessionLimits

pytestmark = pytest.mark.timeout(90)

STORY = tuple(f"This is sentence {number} of it. " for number in range(3))
STORY_S = sum(map(len, STORY)) * MS_PER_CHARACTER / 1000
CUT_S = 3.0
NOTICED_MS = 4_000
BACK_MS = 10_000
SHOWN = re.compile(r"\d")


@pytest_asyncio.fixture
async def media() -> AsyncIterator[MediaClient]:
    async with MediaClient(back_off_s=(0.0,)) as running:
        yield running


async def test_a_conversation_survives_three_seconds_without_a_network(browse: Browse, media: MediaClient) -> None:
    graph = FakeGraph()
    graph.answers = [STORY, ("The capital of France ", "is Paris.")]
    context = await browse()
    async with serving(edge_context(graph, call_media=media)) as url, Network(context) as network:
        page = await VoicePage.open(context, url)
        await page.call()
        await page.write("Tell me a story.")
        await page.shows("speaking")
        for figure in ("round-trip", "jitter", "loss", "loss-up", "concealed", "playout"):
            await expect(page.page.locator(f"#{figure}")).to_have_text(SHOWN)
        network.cut()
        cut_at = (await heard(page.page)).now
        await expect(page.notice).to_have_attribute("data-problem", "reconnecting", timeout=NOTICED_MS)
        await expect(page.notice).to_contain_text("reconnecting")
        await page.shows("connecting", "voice")
        await listened(page.page, cut_at + CUT_S)
        network.mend()
        await expect(page.notice).to_be_hidden(timeout=BACK_MS)
        await expect(page.log).to_contain_text(re.compile(r"Reconnected after \d s"))
        await page.shows("speaking", "voice")
        await page.shows("listening", "voice")
        await expect(page.turns("assistant", "done").locator(".said")).to_have_text("".join(STORY).strip())
        listening = await heard(page.page)
        assert sum(run.end - run.begin for run in listening.remote) > STORY_S - 0.5  # what was not heard is played again
        await page.write("What is the capital of France?")
        await expect(page.turns("assistant", "done")).to_have_count(2, timeout=BACK_MS)
        await expect(page.turns("user")).to_have_count(2)
        assert len(set(sessions(listening))) == 1
        assert len(sessions(listening)) >= 2
        assert "Tell me a story." in str(graph.of("thinker")[-1].parameters["thinker"])
        await page.hang_up()


async def test_of_two_tabs_the_newest_wins_and_a_reload_comes_back_to_it(browse: Browse, media: MediaClient) -> None:
    context = await browse()
    edge = edge_context(FakeGraph(), call_media=media)
    async with serving(edge) as url, Network(context) as network:
        first = await VoicePage.open(context, url)
        await first.call()
        await first.write("What is the capital of France?")
        await first.told("output_audio_buffer.stopped")
        second = VoicePage(await duplicated(first.page))
        await second.shows("listening", "voice")
        await expect(second.turns("assistant", "done")).to_contain_text("Paris")
        await expect(first.notice).to_have_attribute("data-problem", "superseded", timeout=NOTICED_MS)
        await first.shows("error", "none")
        await second.write("What is the capital of France?")
        await expect(second.turns("assistant", "done")).to_have_count(2, timeout=BACK_MS)
        assert len(network.offers) == 2
        await second.page.reload()
        await second.shows("listening", "voice")
        await expect(second.turns("assistant", "done")).to_have_count(2)
        await second.hang_up()
        await second.page.reload()
        await second.shows("idle", "none")
    assert edge.voice_sessions.sessions() == ()


async def test_a_conversation_by_text_comes_back_too(browse: Browse, media: MediaClient) -> None:
    graph, sockets = FakeGraph(), list[WebSocketRoute]()
    context = await browse()

    def through(socket: WebSocketRoute) -> None:
        socket.connect_to_server()
        sockets.append(socket)

    await context.route_web_socket(re.compile("/v1/realtime"), through)
    async with serving(edge_context(graph, call_media=media)) as url:
        page = await VoicePage.open(context, url)
        await page.write("What is the capital of France?")
        await expect(page.turns("assistant", "done")).to_contain_text("Paris")
        await sockets[0].close(code=1011)
        await expect(page.log).to_contain_text("Reconnected", timeout=BACK_MS)
        await page.shows("listening", "text")
        await page.write("And of Spain?")
        await expect(page.turns("assistant", "done")).to_have_count(2, timeout=BACK_MS)
        assert "capital of France" in str(graph.of("thinker")[-1].parameters["thinker"])
        await page.page.reload()
        await page.shows("listening", "text")
        await expect(page.turns("assistant", "done")).to_have_count(2)
        await page.hang_up()


@pytest.mark.full
async def test_sound_that_cannot_get_through_is_noticed_while_requests_can(browse: Browse, media: MediaClient) -> None:
    context = await browse()
    async with serving(edge_context(FakeGraph(), call_media=media)) as url, Network(context) as network:
        page = await VoicePage.open(context, url)
        await page.call()
        network.cut_sound()
        await expect(page.log).to_contain_text("Reconnected", timeout=BACK_MS)
        await page.write("What is the capital of France?")
        await expect(page.turns("assistant", "done")).to_contain_text("Paris", timeout=BACK_MS)
        await page.hang_up()


@pytest.mark.full
async def test_a_conversation_that_is_held_no_longer_is_said_to_be_over(browse: Browse, media: MediaClient) -> None:
    context = await browse()
    edge = edge_context(FakeGraph(), call_media=media, limits=SessionLimits(detached_grace_s=0.1))
    async with serving(edge) as url, Network(context) as network:
        page = await VoicePage.open(context, url)
        await page.call()
        network.cut()
        await expect(page.notice).to_have_attribute("data-problem", "reconnecting", timeout=NOTICED_MS)
        await nobody_left(edge)
        network.mend()
        await expect(page.notice).to_have_attribute("data-problem", "resume_refused", timeout=BACK_MS)
        await page.call()
        await page.hang_up()


@pytest.mark.full
async def test_a_page_that_is_loaded_again_in_mid_answer_hears_the_rest(browse: Browse, media: MediaClient) -> None:
    graph = FakeGraph()
    graph.answers = [STORY, ("The capital of France ", "is Paris.")]
    edge = edge_context(graph, call_media=media)
    context = await browse()
    async with serving(edge) as url:
        page = await VoicePage.open(context, url)
        await page.call()
        await page.write("Tell me a story.")
        await page.shows("speaking")
        await page.page.reload()
        await page.shows("speaking", "voice")
        await page.shows("listening", "voice")
        await expect(page.turns("user", "done")).to_have_text(re.compile("Tell me a story"))
        await expect(page.turns("assistant", "done").locator(".said")).to_have_text("".join(STORY).strip())
        assert len(edge.voice_sessions.sessions()) == 1
        await page.hang_up()


def sessions(listening: Heard) -> list[str]:
    """Whose calls these were, one for each."""
    return [told.event["session"]["id"] for told in listening.events if told.kind == "session.created"]


async def duplicated(page: Page) -> Page:
    """Another tab with what this one keeps, as browsers make it."""
    kept = await page.evaluate("Object.entries(sessionStorage)")
    another = await page.context.new_page()
    await another.goto(page.url)
    await another.evaluate("kept => kept.forEach(([name, value]) => sessionStorage.setItem(name, value))", kept)
    await another.reload()
    return another


async def nobody_left(edge: AppContext) -> None:
    """Each session runs in a task of its name, and gives its seat back with its end."""
    ids = {info.session_id for info in edge.voice_sessions.sessions()}
    async with asyncio.timeout(15):
        await asyncio.gather(*(task for task in asyncio.all_tasks() if task.get_name() in ids))
    assert edge.voice_sessions.sessions() == ()
