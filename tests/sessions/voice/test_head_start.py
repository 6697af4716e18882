"""Answers begun in a pause: one request when it was right, nothing left when it was not."""

from engines.messages.to_gateway import ErrorKind
from engines.parameters import Generation
from fakes.graph import FakeGraph
from fakes.voice_client import config, settle, talking
from sessions.voice.commands import Configure, CreateItem
from sessions.voice.config import SemanticVad, ServerVad
from sessions.voice.events import AudioDelta, ResponseCreated, ResponseDone
from sessions.voice.items import InputText, Item
from sessions.voice.settings import VoiceSettings

UNFINISHED = 0.01


def doubtful() -> FakeGraph:
    """The words never sound finished, so that every turn ends by the longest silence."""
    graph = FakeGraph()
    graph.endings = [UNFINISHED]
    return graph


async def test_the_answer_is_there_when_the_turn_ends() -> None:
    graph = doubtful()
    async with talking(graph, voice_config=config(SemanticVad())) as client:
        await client.say(960, 640)
        assert len(graph.of("thinker")) == 1
        assert client.of(ResponseCreated) == []
        assert client.of(AudioDelta) == []
        await client.say(0, 640)
        done = await client.until(ResponseDone)
        assert done.response.status == "completed"
        assert len(graph.of("thinker")) == 1
        assert done.response.timing is not None
        assert done.response.timing.decision_ms == done.response.timing.ttfa_ms


async def test_speaking_on_throws_it_away() -> None:
    graph = doubtful()
    graph.transcripts = ["I would like", "I would like a coffee."]
    async with talking(graph, voice_config=config(SemanticVad())) as client:
        await client.say(960, 480, 640)
        assert len(graph.of("thinker")) == 1
        assert graph.aborted == [graph.of("thinker")[0].request_id]
        assert graph.open_requests == 1  # voice activity alone
        await client.say(0, 1_280)
        assert (await client.until(ResponseDone)).response.status == "completed"
        assert len(graph.of("thinker")) == 2


async def test_it_is_not_used_for_another_question() -> None:
    """New instructions came after it was begun."""
    graph = doubtful()
    settings = config(SemanticVad())
    async with talking(graph, voice_config=settings) as client:
        await client.say(960, 640)
        await client.send(Configure(config(SemanticVad(), instructions="Be long.")))
        await client.say(0, 640)
        assert (await client.until(ResponseDone)).response.status == "completed"
        thinking = [request.parameters["thinker"] for request in graph.of("thinker")]
        assert [asked.messages[0].content for asked in thinking if isinstance(asked, Generation)] == ["Be brief.", "Be long."]


async def test_one_that_fails_is_asked_again() -> None:
    graph = doubtful()
    graph.fail_submit("thinker", ErrorKind.OVERLOADED, "no slot")
    async with talking(graph, voice_config=config(SemanticVad())) as client:
        await client.say(960, 1_280)
        assert (await client.until(ResponseDone)).response.status == "completed"


async def test_none_where_no_answer_follows() -> None:
    for detection in (SemanticVad(create_response=False), ServerVad(create_response=False)):
        graph = doubtful()
        async with talking(graph, voice_config=config(detection)) as client:
            await client.say(960, 1_280)
            assert graph.of("thinker") == []


async def test_none_when_switched_off() -> None:
    graph = doubtful()
    async with talking(graph, VoiceSettings(head_start=False), config(SemanticVad())) as client:
        await client.say(960, 640)
        assert graph.of("thinker") == []
        await client.say(0, 640)
        await client.until(ResponseDone)
        assert len(graph.of("thinker")) == 1


async def test_a_session_that_ends_in_a_pause_leaves_nothing() -> None:
    graph = doubtful()
    async with talking(graph, voice_config=config(SemanticVad())) as client:
        await client.say(960, 640)
        await settle()
        assert graph.open_requests == 2


async def test_it_is_not_used_when_the_conversation_has_gone_on() -> None:
    """The same plan, but another item stands in the history by the end of the turn."""
    graph = doubtful()
    async with talking(graph, voice_config=config(SemanticVad())) as client:
        await client.say(960, 640)
        note = Item(id="note", role="system", status="completed", parts=(InputText("It is raining."),))
        await client.send(CreateItem(note))
        await client.say(0, 640)
        assert (await client.until(ResponseDone)).response.status == "completed"
        thinking = [request.parameters["thinker"] for request in graph.of("thinker")]
        contents = [[message.content for message in asked.messages] for asked in thinking if isinstance(asked, Generation)]
        assert len(contents) == 2
        assert "It is raining." not in contents[0]
        assert "It is raining." in contents[1]
