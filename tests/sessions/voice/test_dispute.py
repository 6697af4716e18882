"""Whether the user takes the floor stays open for a while at most, whatever becomes of the sound."""

import pytest

import sessions.voice.dispute
from fakes.graph import MS_PER_CHARACTER, FakeGraph, Gate
from fakes.playout import FakePlayout
from fakes.talkative import SETTLED_MS, Floor, answering, scripted
from fakes.voice_client import VoiceClient, config, settle, talking
from sessions.voice.commands import ClearAudio
from sessions.voice.config import SemanticVad
from sessions.voice.events import ResponseCreated, ResponseDone, SpeechStarted


async def sound_after_a_question(client: VoiceClient, transcript: Gate) -> None:
    """Its words become known while the sound goes on, so that its answer waits."""
    await client.say(960, 960, 200)
    transcript.release()
    await settle()
    assert client.of(ResponseCreated) == []


async def test_a_client_that_falls_silent_within_a_sound_is_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is muted: it sends nothing at all."""
    monkeypatch.setattr(sessions.voice.dispute, "LONGEST_WAIT_S", 0.05)
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


async def test_a_long_noise_over_the_agent_costs_little_recognition() -> None:
    graph = scripted("")
    async with talking(graph, voice_config=config(SemanticVad()), playout=Floor()) as client:
        await answering(client)
        await client.say(20_000)
        recognised = [payload for request in graph.of("asr") for payload in graph.pushed[request.request_id]]
        assert 5 < len(recognised) < 15
        assert sum(len(payload.arrays["pcm"].data) / 48_000 for payload in recognised) < 40
        assert client.of(SpeechStarted) == []


async def test_a_noise_that_outlasts_the_agent_is_a_turn_from_then_on() -> None:
    graph, playout = FakeGraph(), Floor()
    graph.transcripts = [""]
    async with talking(graph, voice_config=config(SemanticVad()), playout=playout) as client:
        await answering(client)
        await client.say(3_000)
        playout.unfinished = ()
        assert client.of(SpeechStarted) == []
        await client.say(2_500)
        started = await client.until(SpeechStarted)
        assert started.audio_start_ms > SETTLED_MS + 3_000
        asked = len(graph.of("asr"))
        await client.say(5_000)
        assert len(graph.of("asr")) == asked


@pytest.mark.parametrize(("remaining_ms", "interrupts"), [(100, True), (2_000, False)])
async def test_a_yes_at_the_end_of_a_question_of_the_agent_is_an_answer(remaining_ms: int, interrupts: bool) -> None:
    graph, playout = FakeGraph(), Floor()
    graph.transcripts, playout.remaining_ms = ["Yes."], remaining_ms
    async with talking(graph, voice_config=config(SemanticVad()), playout=playout) as client:
        await answering(client)
        await client.until(ResponseDone)
        await client.say(320, 300)
        assert bool(client.of(SpeechStarted)) is interrupts


ANSWER = ("You can visit it in the spring. ", "There is more that I want to tell. ", "Let me know when to stop.")


@pytest.mark.parametrize(
    ("after_ms", "words", "interrupts"),
    [
        (1_000, "You can visit it", False),
        (1_000, "I want to tell", True),  # has not sounded yet
        (3_200, "There is more that", False),
        (3_200, "You can visit it", True),  # was said long ago
        (1_000, "You can stop.", True),
    ],
)
async def test_where_the_client_plays_only_what_sounds_may_be_an_echo(after_ms: int, words: str, interrupts: bool) -> None:
    graph = FakeGraph()
    graph.transcripts, graph.answers = [words], [ANSWER]
    async with talking(graph, voice_config=config(SemanticVad())) as client:
        await answering(client, after_ms)
        await client.say(800, 300)
        assert bool(client.of(SpeechStarted)) is interrupts


def test_how_long_the_first_sentence_sounds() -> None:
    """The test above relies on it."""
    assert 1_800 < len(ANSWER[0]) * MS_PER_CHARACTER < 2_000
