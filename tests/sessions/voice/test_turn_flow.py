"""Whoever is told that speech began is told that it ended."""

import asyncio

import pytest

from fakes.talkative import Floor, answering, scripted
from fakes.voice_client import config, settle, talking
from sessions.voice.commands import ClearAudio, Command, Configure
from sessions.voice.config import SemanticVad
from sessions.voice.events import AudioCommitted, ResponseCreated, SpeechStarted, SpeechStopped
from sessions.voice.settings import VoiceSettings


@pytest.mark.parametrize("command", [ClearAudio(), Configure(config(None))])
async def test_a_turn_that_the_client_ends_is_told_of(command: Command) -> None:
    async with talking(voice_config=config(SemanticVad())) as client:
        await client.say(960)
        await client.send(command)
        await settle()
        (started,), (stopped,) = client.of(SpeechStarted), client.of(SpeechStopped)
        assert (stopped.item_id, stopped.audio_end_ms) == (started.item_id, 960)
        assert client.events.index(stopped) == len(client.events) - 2
        await client.say(0, 1_000)
        assert client.of(AudioCommitted) == []


async def test_listening_is_switched_off_after_what_is_being_told() -> None:
    """The client reads slowly, and hears of an interruption while it asks to be heard no more."""
    graph = scripted("Could you stop please?")
    async with talking(graph, VoiceSettings(event_queue=1), config(SemanticVad()), Floor()) as client:
        await answering(client)
        client.reading.clear()
        await client.say(1_500)
        async with asyncio.TaskGroup() as sending:
            sending.create_task(client.send(Configure(config(None))))
            await settle()
            client.reading.set()
        await settle()
        assert len(client.of(SpeechStarted)) == len(client.of(SpeechStopped)) == 1
        assert client.names().index("SpeechStopped") < client.names().index("Configured")


async def test_a_turn_that_has_ended_is_answered_though_listening_is_switched_off_meanwhile() -> None:
    async with talking(settings=VoiceSettings(event_queue=1), voice_config=config(SemanticVad())) as client:
        client.reading.clear()
        await client.say(960, 960)
        async with asyncio.TaskGroup() as sending:
            sending.create_task(client.send(Configure(config(None))))
            await settle()
            client.reading.set()
        await client.until(ResponseCreated)
