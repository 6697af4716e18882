"""Someone opens the page, speaks, interrupts and reads along: with the real models, in Chromium."""

import re

import pytest
from playwright.async_api import expect

import recordings
from bench.server import Server
from browser.conftest import Browse
from browser.ears import heard
from browser.voice_page import ANSWERED_MS, VoicePage
from recordings import Utterance

pytestmark = [pytest.mark.real_models, pytest.mark.timeout(120)]

LONG = "Tell me a long story about a ship and its crew."
SHORTLY = {"instructions": "Answer in one short sentence.", "max_output_tokens": 16}


async def test_a_conversation_of_several_turns_is_heard_and_read(server: Server, browse: Browse, question: Utterance) -> None:
    follow_up = recordings.read_by_espeak("Who wrote the play Hamlet?")
    page = await VoicePage.open(await browse((question, 6.5), (follow_up, 6.5), (recordings.spoken_commands()[2], 6)), server.url)
    await page.call()
    await page.order(SHORTLY)
    await page.told("output_audio_buffer.stopped", 3, timeout_ms=60_000)
    await page.shows("listening")
    await expect(page.turns("user", "done")).to_contain_text([re.compile("capital"), re.compile("Hamlet"), re.compile(r"\w")])
    await expect(page.turns("assistant").locator(".said")).to_contain_text([re.compile(r"\w+ \w+")] * 3)
    first_audio = page.page.locator("#timing-table tr[data-response] td[data-mark=audible]")
    await expect(first_audio.first).to_have_text(re.compile(r"\d"))
    listening = await heard(page.page)
    assert sum(run.end - run.begin for run in listening.remote) > 2
    assert listening.stats[-1].lost == 0


async def test_speech_interrupts_an_answer(server: Server, browse: Browse, question: Utterance) -> None:
    page = await VoicePage.open(await browse((recordings.read_by_espeak(LONG), 4), (question, 8)), server.url)
    await page.call()
    await page.told("output_audio_buffer.cleared")
    await expect(page.turns("assistant", "cut")).to_have_count(1)
    await page.told("output_audio_buffer.started", 2)
    await expect(page.turns("user", "done").last).to_contain_text("capital", timeout=ANSWERED_MS)
    await expect(page.turns("assistant")).to_have_count(2)


async def test_the_button_and_the_key_interrupt_an_answer(server: Server, browse: Browse) -> None:
    page = await VoicePage.open(await browse(), server.url)
    await page.call()
    await page.write(LONG)
    await page.shows("speaking")
    await page.interrupt.click()
    await page.shows("listening")
    await expect(page.turns("assistant", "cut")).to_have_count(1)
    await expect(page.interrupt).to_be_disabled()
    await page.write(LONG)
    await page.shows("speaking")
    await page.page.keyboard.press("Escape")
    await page.shows("listening")
    await expect(page.turns("assistant", "cut")).to_have_count(2)


async def test_a_line_of_text_in_a_call_is_answered_by_voice(server: Server, browse: Browse) -> None:
    page = await VoicePage.open(await browse(), server.url)
    await page.call()
    await page.write("What is the capital of France?")
    await page.told("output_audio_buffer.stopped")
    await expect(page.turns("user")).to_contain_text("capital of France")
    await expect(page.turns("assistant", "done")).to_contain_text("Paris")
    assert (await heard(page.page)).remote


async def test_a_page_reloaded_in_mid_answer_goes_on_with_its_conversation(server: Server, browse: Browse) -> None:
    page = await VoicePage.open(await browse(), server.url)
    await page.call()
    await page.write(LONG)
    await page.shows("speaking")
    await page.page.reload()
    await page.shows("speaking", "voice")
    await expect(page.turns("user")).to_have_text(re.compile("long story"))
    await page.write("What is the capital of France?")
    await expect(page.turns("assistant", "cut")).to_have_count(1)
    await page.told("output_audio_buffer.started", 2)
    await page.hang_up()


async def test_without_permission_the_page_says_so_and_goes_on_by_text(server: Server, browse: Browse) -> None:
    page = await VoicePage.open(await browse(allowed=False), server.url)
    await page.start.click()
    await expect(page.notice).to_have_attribute("data-problem", "permission_denied")
    await expect(page.notice).to_contain_text("microphone")
    await goes_on_by_text(page)


async def test_without_webrtc_the_page_says_so_and_goes_on_by_text(server: Server, browse: Browse) -> None:
    context = await browse()
    await context.add_init_script("delete window.RTCPeerConnection")
    page = await VoicePage.open(context, server.url)
    await page.start.click()
    await expect(page.notice).to_have_attribute("data-problem", "no_webrtc")
    await expect(page.notice).to_contain_text("WebRTC")
    await goes_on_by_text(page)


async def goes_on_by_text(page: VoicePage) -> None:
    await page.page.get_by_role("button", name="Continue by text").click()
    await page.shows("listening", "text")
    await page.write("What is the capital of France?")
    await expect(page.turns("assistant", "done")).to_contain_text("Paris", timeout=ANSWERED_MS)
