"""Whether the user takes the floor stays open for a while at most, whatever becomes of the sound."""

import pytest

import sessions.dispute
from fakes.graph import FakeGraph, Gate
from fakes.playout import FakePlayout
from fakes.voice_client import VoiceClient, config, settle, talking
from sessions.commands import ClearAudio
from sessions.events import ResponseCreated, ResponseDone
from sessions.voice_config import SemanticVad


async def sound_after_a_question(client: VoiceClient, transcript: Gate) -> None:
    """Its words become known while the sound goes on, so that its answer waits."""
    await client.say(960, 960, 200)
    transcript.release()
    await settle()
    assert client.of(ResponseCreated) == []


async def test_a_client_that_falls_silent_within_a_sound_is_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is muted: it sends nothing at all."""
    monkeypatch.setattr(sessions.dispute, "LONGEST_WAIT_S", 0.05)
    graph, playout = FakeGraph(), FakePlayout()
    async with talking(graph, voice_config=config(SemanticVad()), playout=playout) as client:
        await sound_after_a_question(client, graph.hold("transcript"))
        await client.until(ResponseDone)
        assert playout.told[-1] == "resume"


async def test_the_answer_begins_when_voice_activity_is_lost_within_a_sound() -> None:
    graph, playout = FakeGraph(), FakePlayout()
    async with talking(graph, voice_config=config(SemanticVad()), playout=playout) as client:
        await sound_after_a_question(client, graph.hold("transcript"))
        graph.lose("vad")
        await settle()
        assert playout.told[-1] == "resume"
        assert len(client.of(ResponseCreated)) == 1


async def test_the_answer_begins_when_the_sound_is_cleared() -> None:
    graph = FakeGraph()
    async with talking(graph, voice_config=config(SemanticVad()), playout=FakePlayout()) as client:
        await sound_after_a_question(client, graph.hold("transcript"))
        await client.send(ClearAudio())
        await settle()
        assert len(client.of(ResponseCreated)) == 1
