"""The voice page in Chromium as a measuring instrument: a file speaks into it, its ears note what comes out."""

import random
import tempfile
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import numpy as np

import recordings
from bench.server import Server
from browser import microphone
from browser.chromium import chromium
from browser.ears import Heard, Placed, Run, Told, heard, listened, place, voiced_runs
from browser.lateness import gaps
from browser.microphone import Script
from browser.voice_page import VoicePage
from recordings import Utterance

SHORT_ANSWER: dict[str, Any] = {"instructions": "Answer in one short sentence.", "max_output_tokens": 16}
LONG_ANSWER: dict[str, Any] = {"instructions": "Whatever you are asked, answer with a long story.", "max_output_tokens": 120}
SURELY_NO_ANSWER_S = 0.3
"""After the end of speech: the shortest silence that ends a turn is 384 ms."""
AUDIBLE_S = 0.3
"""An answer sounds at a moment if it did within this long before: speech has pauses."""
PLAYED_OUT_S = 0.5
"""The longest that the browser holds the last packets of an answer."""


class Turn(msgspec.Struct, frozen=True):
    """`latency_ms`: end of speech → first audible sample; None when no answer came, or one that began before the end.
    `early`: committed before the end. `over_answer`: spoken while the answer before was still heard.
    """

    name: str
    latency_ms: float | None
    early: bool
    over_answer: bool


class Answer(msgspec.Struct, frozen=True):
    """An answer that was played to its end. `concealed_ms`: made up by the jitter buffer meanwhile."""

    text: str
    heard: list[Run]
    concealed_ms: float

    @property
    def seconds(self) -> float:
        return self.heard[-1].end - self.heard[0].begin if self.heard else 0.0


@asynccontextmanager
async def calling(server: Server, session: dict[str, Any], written: Script) -> AsyncGenerator[VoicePage, None]:
    """The page in a call of which the session has been changed to this; the file speaks into it."""
    with tempfile.TemporaryDirectory() as folder:
        wav = microphone.write(Path(folder) / "microphone.wav", written)
        async with chromium(wav) as context:
            page = await VoicePage.open(context, server.url)
            await page.call()
            await page.order(session)
            yield page


async def spoken(server: Server, session: dict[str, Any], written: Script) -> Heard:
    """What is heard while the whole file is played into the page, to the end of the last answer."""
    async with calling(server, session, written) as page:
        so_far = await heard(page.page)
        await listened(page.page, so_far.now + written.seconds)
        await page.shows("listening")
        await listened(page.page, (await heard(page.page)).now + PLAYED_OUT_S)
        return await heard(page.page)


class Talk(msgspec.Struct, frozen=True):
    """`waited_ms`: how long the browser's jitter buffer held the sound, in the mean."""

    turns: list[Turn]
    answers: list[Answer]
    connects_ms: list[float]
    waited_ms: float


async def short_turns(server: Server, asked: Sequence[Utterance], room_s: float) -> Talk:
    """One call; each answer has so much room to end before the next question."""
    written = microphone.script((utterance, room_s) for utterance in asked)
    listening = await spoken(server, SHORT_ANSWER, written)
    places = place(written, listening.microphone)
    ends = [following.begin for following in places[1:]] + [listening.now]
    turns = [turn(listening, one, until) for one, until in zip(places, ends, strict=True)]
    return Talk(turns, answers(listening), listening.connects_ms, listening.waited_ms(places[0].begin, listening.now))


def turn(listening: Heard, one: Placed, until: float) -> Turn:
    early = any(told.kind == "input_audio_buffer.committed" and one.begin < told.at < one.end for told in listening.events)
    first = listening.first_voiced(one.end, until)
    latency_ms = None if early or first is None else round((first - one.end) * 1000, 1)
    over_answer = listening.last_voiced(one.begin - AUDIBLE_S, one.begin) is not None
    return Turn(one.spoken.utterance.name, latency_ms, early, over_answer)


def answers(listening: Heard) -> list[Answer]:
    """Those that were neither interrupted nor silent."""
    texts = {
        told.event["response_id"]: told.event["transcript"]
        for told in listening.events
        if told.kind == "response.output_audio_transcript.done"
    }
    begun = {told.event["response_id"]: told.at for told in listening.events if told.kind == "output_audio_buffer.started"}
    ended = {told.event["response_id"]: told.at for told in listening.events if told.kind == "output_audio_buffer.stopped"}
    return [
        Answer(texts[answer], _between(listening, begun[answer], at + PLAYED_OUT_S), _concealed_ms(listening, begun[answer], at))
        for answer, at in ended.items()
    ]


def _between(listening: Heard, begin: float, end: float) -> list[Run]:
    return [run for run in listening.remote if begin < run.end and run.begin < end]


def _concealed_ms(listening: Heard, begin: float, end: float) -> float:
    totals = [one.concealed for one in listening.stats if begin <= one.at <= end]
    return (totals[-1] - totals[0]) / (microphone.RATE / 1000) if totals else 0.0


async def gaps_in(server: Server, answer: Answer) -> int:
    """Waits inside this answer that its own audio, read again by the same voice, does not have."""
    body = {"model": "piper-joe", "voice": "joe", "input": answer.text, "response_format": "pcm"}
    async with aiohttp.ClientSession() as http, http.post(f"{server.url}/v1/audio/speech", json=body) as read:
        read.raise_for_status()
        samples = np.frombuffer(await read.read(), "<i2").astype(np.float32) / np.float32(32768)
    return gaps(voiced_runs(recordings.resample(samples, recordings.RATE, microphone.RATE)), answer.heard)


async def interruptions_ms(server: Server, asked: Sequence[Utterance], seed: int = 3) -> list[float]:
    """Onset of an utterance → last audible sample of the answer that it interrupts. Each utterance interrupts the answer to the
    one before it, at a random moment; those that found nothing to interrupt are left out.
    """
    draw = random.Random(seed)
    written = microphone.script((utterance, draw.uniform(1.6, 3.6)) for utterance in asked)
    listening = await spoken(server, LONG_ANSWER, written)
    taken_ms: list[float] = []
    for one in place(written, listening.microphone):
        until = until_next_answer(listening.events, one.begin, one.end)
        last = listening.last_voiced(one.begin - AUDIBLE_S, until)
        if last is not None and was_cleared(listening.events, one.begin, until):
            taken_ms.append(round(max(0.0, last - one.begin) * 1000, 1))
    return taken_ms


def until_next_answer(events: Sequence[Told], began: float, ended: float) -> float:
    """The moment before which no sound can belong to the answer to an utterance that began and ended then."""
    starts = (told.at for told in events if told.kind == "output_audio_buffer.started" and told.at > began)
    return min([ended + SURELY_NO_ANSWER_S, *starts])


def was_cleared(events: Sequence[Told], began: float, until: float) -> bool:
    """Whether there was an answer to cut off in this span."""
    return any(told.kind == "output_audio_buffer.cleared" and began < told.at < until + AUDIBLE_S for told in events)


async def long_answer(server: Server) -> Answer:
    """Asked for by text in a call, so that nobody speaks meanwhile."""
    async with calling(server, {"max_output_tokens": 120}, microphone.script([])) as page:
        await page.write("Tell me a long story about a ship and its crew.")
        await page.told("output_audio_buffer.stopped", timeout_ms=60_000)
        await listened(page.page, (await heard(page.page)).now + PLAYED_OUT_S)
        return answers(await heard(page.page))[0]


async def connects_ms(server: Server, count: int) -> list[float]:
    """Start and stop, again and again: from the request of the offer to the connection."""
    with tempfile.TemporaryDirectory() as folder:
        wav = microphone.write(Path(folder) / "microphone.wav", microphone.script([]))
        async with chromium(wav) as context:
            page = await VoicePage.open(context, server.url)
            for _ in range(count):
                await page.call()
                await page.hang_up()
            return (await heard(page.page)).connects_ms
