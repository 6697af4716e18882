"""Items by command: truncated, deleted, retrieved, put somewhere, and whose ids are taken."""

import pytest

from fakes.graph import FakeGraph, tone
from fakes.thinking import contents, said
from fakes.voice_client import VoiceClient, config, settle, talking
from sessions.voice.commands import (
    AppendAudio,
    CommitAudio,
    CreateItem,
    CreateResponse,
    DeleteItem,
    RetrieveItem,
    TruncateItem,
)
from sessions.voice.config import SemanticVad
from sessions.voice.events import (
    AudioCommitted,
    ItemAdded,
    ItemDeleted,
    ItemDone,
    ItemRetrieved,
    ItemTruncated,
    OutputItemAdded,
    OutputItemDone,
    ResponseDone,
    SpeechStarted,
    TextDone,
    TranscriptCompleted,
)
from sessions.voice.items import InputText, Item, OutputAudio


@pytest.mark.parametrize(
    ("asked", "expected", "heard"),
    [
        (0, 0, ""),
        (-5, 0, ""),
        (22 * 60, 22 * 60, "The capital of France"),
        (12 * 60, 12 * 60, "The capital"),
        (10_000_000, 31 * 60, "The capital of France is Paris."),
    ],
)
async def test_truncate(asked: int, expected: int, heard: str) -> None:
    async with talking() as client:
        await client.send(said("?"), CreateResponse())
        item = (await client.until(ResponseDone)).response.output[0]
        await client.send(TruncateItem(item.id, 0, asked))
        assert (await client.until(ItemTruncated)).audio_end_ms == expected
        await client.send(RetrieveItem(item.id))
        assert (await client.until(ItemRetrieved)).item.parts == (OutputAudio(heard, expected),)
        await client.send(said("And?"), CreateResponse())
        await client.until(ResponseDone)
        spoken = [content for role, content in contents(client.graph) if role == "assistant"]
        assert spoken == ([heard] if heard else [])


async def test_what_was_not_heard_once_is_not_heard_by_a_later_truncation() -> None:
    async with talking() as client:
        await client.send(said("?"), CreateResponse())
        item = (await client.until(ResponseDone)).response.output[0]
        await client.send(TruncateItem(item.id, 0, 12 * 60), TruncateItem(item.id, 0, 10_000), RetrieveItem(item.id))
        assert (await client.until(ItemRetrieved)).item.parts == (OutputAudio("The capital", 12 * 60),)


async def test_truncate_of_an_item_in_progress_is_answered_and_takes_effect_at_its_end() -> None:
    graph = FakeGraph()
    gate = graph.hold("audio")
    gate.step(1)
    async with talking(graph) as client:
        await client.send(CreateResponse())
        item = (await client.until(OutputItemAdded)).item
        await settle()
        await client.send(TruncateItem(item.id, 0, 12 * 60))
        assert (await client.until(ItemTruncated)).audio_end_ms == 12 * 60
        gate.release()
        done = await client.until(OutputItemDone)
        assert done.item.parts == (OutputAudio("The capital", 12 * 60),)
        assert client.of(TextDone)[0].text == "The capital of France is Paris."


async def test_delete_and_retrieve() -> None:
    async with talking() as client:
        await client.send(said("Forget this.", "a"), said("Keep this.", "b"), RetrieveItem("a"))
        assert (await client.until(ItemRetrieved)).item.parts == (InputText("Forget this."),)
        await client.send(DeleteItem("a"))
        await client.until(ItemDeleted)
        await client.send(CreateResponse())
        await client.until(ResponseDone)
        assert contents(client.graph)[1:] == [("user", "Keep this.")]


async def deleted_in_mid_answer(client: VoiceClient) -> str:
    await client.send(CreateResponse())
    item = (await client.until(OutputItemAdded)).item
    await client.send(DeleteItem(item.id))
    return item.id


async def test_an_item_deleted_while_it_is_spoken_stays_away() -> None:
    graph = FakeGraph()
    gate = graph.hold("audio")
    async with talking(graph) as client:
        item_id = await deleted_in_mid_answer(client)
        gate.release()
        await client.until(ResponseDone)
        assert (await client.refusal(RetrieveItem(item_id))).code == "item_retrieve_invalid_item_id"


async def test_nobody_takes_the_id_of_an_answer_that_goes_on() -> None:
    graph = FakeGraph()
    gate = graph.hold("audio")
    async with talking(graph) as client:
        item_id = await deleted_in_mid_answer(client)
        assert (await client.refusal(said("mine", item_id))).code == "item_create_duplicate_id"
        gate.release()
        await client.until(ResponseDone)


async def test_nobody_takes_the_id_of_speech_that_is_still_recognised() -> None:
    graph = FakeGraph()
    gate = graph.hold("transcript")
    async with talking(graph) as client:
        await client.send(AppendAudio(tone(500)), CommitAudio())
        item_id = (await client.until(AudioCommitted)).item_id
        await client.send(DeleteItem(item_id))
        assert (await client.refusal(said("mine", item_id))).code == "item_create_duplicate_id"
        gate.release()
        await client.until(TranscriptCompleted)


async def test_the_id_of_a_turn_in_progress_is_taken() -> None:
    async with talking(voice_config=config(SemanticVad())) as client:
        await client.say(960)
        item_id = (await client.until(SpeechStarted)).item_id
        refused = await client.refusal(said("mine", item_id))
        assert (refused.code, refused.field) == ("item_create_duplicate_id", "item.id")
        await client.say(0, 960)
        assert (await client.until(ItemDone)).item.id == item_id
        assert (await client.until(ResponseDone)).response.status == "completed"


async def test_a_deleted_item_may_come_back() -> None:
    async with talking() as client:
        await client.send(said("one", "a"), DeleteItem("a"), said("two", "a"))
        await client.send(CreateResponse())
        await client.until(ResponseDone)
        assert contents(client.graph)[1:] == [("user", "two")]


async def test_items_go_where_they_are_told() -> None:
    async with talking() as client:
        await client.send(said("b", "b"))
        for item_id, previous in (("a", "root"), ("c", "b"), ("ab", "a")):
            item = Item(id=item_id, role="user", status="completed", parts=(InputText(item_id),))
            await client.send(CreateItem(item, previous))
        await settle()
        assert [added.previous_item_id for added in client.of(ItemAdded)] == [None, None, "b", "a"]
        await client.send(CreateResponse())
        await client.until(ResponseDone)
        assert [content for _, content in contents(client.graph)[1:]] == ["a", "ab", "b", "c"]
