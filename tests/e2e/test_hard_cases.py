"""Faults that users report of servers like this one, tried on the real one: interruptions, vanished clients, dead workers."""

import asyncio

import openai
import pytest

import recordings
from bench.conversation import Conversation
from bench.server import Server
from e2e.observing import counters, settle

pytestmark = [pytest.mark.real_models, pytest.mark.timeout(180)]

ENGINES_STOP_S = 0.1
LONG = "Tell me a long story about a ship and its crew."


async def test_speech_stops_a_long_answer_and_its_engines(server: Server) -> None:
    async with Conversation(server.url) as talk:
        asking = asyncio.create_task(talk.write(LONG, {"max_output_tokens": 200}))
        await talk.until("response.output_audio.delta")
        cancelling = talk.upcoming("response.done")
        interrupting = asyncio.create_task(talk.listen_only(recordings.read_sentences()[0], quiet_after_s=0))
        cancelled = await cancelling
        await asyncio.sleep(ENGINES_STOP_S)
        before = await counters(server)
        await asyncio.sleep(ENGINES_STOP_S)
        after = await counters(server)
        for task in (interrupting, asking):
            task.cancel()
        await asyncio.wait([interrupting, asking])
    assert cancelled["response"]["status"] == "cancelled"
    assert cancelled["response"]["status_details"]["reason"] == "turn_detected"
    assert after["thinker"] == before["thinker"]
    assert after["code2wav"] == before["code2wav"]


@pytest.mark.parametrize("sound", ["silence", "noise", "nothing"])
async def test_a_turn_without_speech_is_no_turn(server: Server, client: openai.AsyncOpenAI, sound: str) -> None:
    """Committed by hand, it gets an empty transcript or a refusal; the turn after it works."""
    samples = {"silence": recordings.silence(1), "noise": recordings.noise(1, 0.1), "nothing": recordings.silence(0)}[sound]
    async with Conversation(server.url, {"audio": {"input": {"turn_detection": None}}}) as talk:
        await talk.append(recordings.to_pcm(samples))
        await talk.send({"type": "input_audio_buffer.commit"})
        await talk.until("error" if sound == "nothing" else "conversation.item.input_audio_transcription.completed")
        turn = await talk.write("What is the capital of France?", {"max_output_tokens": 20})
    assert "Paris" in turn.answer


@pytest.mark.parametrize("phase", ["append", "response.created", "response.output_audio.delta"])
async def test_a_client_that_vanishes_leaves_nothing_behind(server: Server, phase: str) -> None:
    """The TCP connection is reset in that phase of a turn."""
    talk = Conversation(server.url)
    await talk.__aenter__()
    if phase == "append":
        await talk.append(recordings.spoken_commands()[0].pcm())
    else:
        asking = asyncio.create_task(talk.write(LONG, {"max_output_tokens": 200}))
        await talk.until(phase)
        asking.cancel()
    await talk.reset()
    await settle(server)


async def test_thirty_one_seconds_in_one_file(server: Server, client: openai.AsyncOpenAI) -> None:
    """Served."""
    sentence = recordings.read_sentences()[0]
    samples = recordings.repeat(sentence, 31)
    heard = await client.audio.transcriptions.create(model="whisper-tiny-en", file=("long.wav", recordings.wav(samples)))
    assert heard.text.lower().count("dashwood") >= 3


async def test_thirty_one_seconds_in_one_realtime_turn(server: Server) -> None:
    """Served, cut at its pauses for a recogniser that hears 30 s at most."""
    pcm = recordings.to_pcm(recordings.repeat(recordings.read_sentences()[0], 31))
    async with Conversation(server.url, {"audio": {"input": {"turn_detection": None}}}) as talk:
        await talk.append(pcm)
        await talk.send({"type": "input_audio_buffer.commit"})
        heard = await talk.until("conversation.item.input_audio_transcription.completed")
    assert heard["transcript"].lower().count("dashwood") >= 3
    assert heard["usage"]["seconds"] == pytest.approx(31, abs=0.1)


async def test_two_people_at_once_hear_only_their_own(server: Server) -> None:
    async def ask(country: str) -> str:
        async with Conversation(server.url, {"instructions": "Answer in one short sentence."}) as talk:
            return (await talk.write(f"What is the capital of {country}?", {"max_output_tokens": 30})).answer

    countries = {"France": "Paris", "Italy": "Rome", "Germany": "Berlin", "Japan": "Tokyo"}
    answers = await asyncio.gather(*(ask(country) for country in countries))
    for answer, capital in zip(answers, countries.values(), strict=True):
        assert capital in answer
        assert not any(other in answer for other in countries.values() if other != capital)
