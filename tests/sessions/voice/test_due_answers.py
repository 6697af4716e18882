"""A question is answered whatever noises follow it."""

import asyncio

import msgspec
import pytest

from fakes.graph import FakeGraph
from fakes.playout import FakePlayout
from fakes.talkative import scripted
from fakes.voice_client import UNGUARDED, VoiceClient, config, settle, talking
from sessions.voice.answers import Answers
from sessions.voice.commands import CancelResponse, CreateResponse
from sessions.voice.config import SemanticVad, ServerVad
from sessions.voice.events import AnswerForgone, ResponseCreated, ResponseDone, SpeechStarted, SpeechStopped
from sessions.voice.playout import Heard
from sessions.voice.settings import VoiceSettings

QUESTION = "What is the capital of France?"
NO_HEAD_START = VoiceSettings(head_start=False)


def statuses(client: VoiceClient) -> list[str]:
    return [done.response.status for done in client.of(ResponseDone)]


async def test_a_knock_that_takes_the_floor_gives_it_back() -> None:
    """Its words take too long, so that it counts as an interruption of an answer that has not sounded yet."""
    graph = FakeGraph()
    graph.transcripts = [QUESTION, ""]
    graph.hold_submit("thinker")
    transcript = graph.hold("transcript")
    async with talking(graph, NO_HEAD_START, config(SemanticVad()), FakePlayout()) as client:
        await client.say(960, 960)
        transcript.step(1)
        await client.until(ResponseCreated)
        await client.say(320, 1_200)
        assert len(client.of(SpeechStarted)) == 2
        transcript.release()
        graph.hold_submit("thinker").release()
        await client.say(0, 1_000)
        assert statuses(client) == ["cancelled", "completed"]


async def test_a_knock_before_the_words_of_a_question_are_known_is_nothing() -> None:
    graph = FakeGraph()
    graph.transcripts = [QUESTION, ""]
    transcript = graph.hold("transcript")
    detection = ServerVad(interrupt_response=False, silence_ms=200)
    async with talking(graph, NO_HEAD_START, config(detection), FakePlayout()) as client:
        await client.say(960, 400, 320, 400)
        transcript.release()
        await client.until(ResponseDone)
        await client.say(0, 1_000)
        assert statuses(client) == ["completed"]


async def test_a_click_that_cancels_gives_the_answer_back() -> None:
    """Every guard is off, and it is too short to be a turn."""
    graph = FakeGraph()
    graph.hold_submit("thinker")
    settings = msgspec.structs.replace(UNGUARDED, head_start=False)
    async with talking(graph, settings, config(SemanticVad()), FakePlayout()) as client:
        await client.say(960, 960)
        await client.until(ResponseCreated)
        await client.say(128, 1_200)
        graph.hold_submit("thinker").release()
        await settle()
        assert len(client.of(SpeechStarted)) == len(client.of(SpeechStopped)) == 2
        assert statuses(client) == ["cancelled", "completed"]


async def test_of_which_something_was_heard_is_not_begun_again() -> None:
    graph, playout = scripted(QUESTION, ""), FakePlayout()
    async with talking(graph, UNGUARDED, config(SemanticVad()), playout) as client:
        await client.say(960, 960)
        created = await client.until(ResponseCreated)
        playout.unfinished = (Heard(created.response.id, "item_2", 400),)
        await client.say(320, 2_000)
        assert statuses(client) == ["cancelled"]
        assert len(client.of(ResponseCreated)) == 1


async def test_what_the_client_has_cancelled_is_not_begun_again() -> None:
    graph = FakeGraph()
    graph.transcripts = [QUESTION, ""]
    graph.hold_submit("thinker")
    async with talking(graph, UNGUARDED, config(SemanticVad()), FakePlayout()) as client:
        await client.say(960, 960)
        await client.until(ResponseCreated)
        await client.send(CancelResponse(None))
        await client.say(320, 2_000)
        graph.hold_submit("thinker").release()
        await settle()
        assert len(client.of(ResponseCreated)) == 1


async def test_a_head_start_is_dropped_when_its_answer_is_refused() -> None:
    """The client has asked for an answer itself, in the pause."""
    graph = FakeGraph()
    graph.endings = [0.01]
    detection = ServerVad(interrupt_response=False, silence_ms=600)
    async with talking(graph, voice_config=config(detection), playout=FakePlayout()) as client:
        await client.say(960, 300)
        begun = graph.of("thinker")[0].request_id
        graph.hold("text")
        await client.send(CreateResponse())
        await client.say(0, 600)
        await settle()
        assert begun in graph.aborted
        graph.hold("text").release()


async def test_who_speaks_on_while_another_answer_is_being_stopped_is_answered_once(monkeypatch: pytest.MonkeyPatch) -> None:
    stopped = asyncio.Event()

    async def silence(answers: Answers) -> None:
        await stopped.wait()

    monkeypatch.setattr(Answers, "silence", silence)
    async with talking(settings=UNGUARDED, voice_config=config(SemanticVad()), playout=FakePlayout()) as client:
        await client.say(960, 960, 320)
        assert len(client.of(SpeechStarted)) == 2
        stopped.set()
        await settle()
        assert client.of(ResponseCreated) == []
        await client.say(0, 960)
        assert len(client.of(ResponseCreated)) == 1


async def test_an_answer_that_will_not_begin_is_told_to_be_none() -> None:
    """Nobody came back to hear it; or it was refused, as another one was being given."""
    graph = FakeGraph()
    transcript = graph.hold("transcript")
    detection = ServerVad(interrupt_response=False, silence_ms=200)
    async with talking(graph, NO_HEAD_START, config(detection), FakePlayout()) as client:
        client.session.give_up()
        await settle()
        assert client.of(AnswerForgone) == []
        await client.say(960, 400)
        client.session.give_up()
        await client.until(AnswerForgone)
        await client.say(960, 400)
        graph.hold("text")
        await client.send(CreateResponse(input=()))
        transcript.release()
        await client.until(AnswerForgone)
        graph.hold("text").release()
