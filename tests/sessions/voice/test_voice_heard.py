"""The client plays for itself: what the conversation remembers of answers that were interrupted."""

import pytest

from engines.parameters import Generation
from fakes.graph import MS_PER_CHARACTER, FakeGraph
from fakes.playout import FakePlayout
from fakes.voice_client import UNGUARDED, VoiceClient, config, settle, talking
from sessions.voice.client_playout import ClientPlayout
from sessions.voice.commands import (
    AcknowledgePlayback,
    CancelResponse,
    ClearPlayback,
    Command,
    CommandRefused,
    CreateItem,
    CreateResponse,
    DeleteItem,
    RetrieveItem,
    TruncateItem,
)
from sessions.voice.config import SemanticVad
from sessions.voice.events import (
    AudioDelta,
    ItemRetrieved,
    ItemTruncated,
    OutputItemAdded,
    PlaybackCleared,
    ResponseDone,
    SpeechStarted,
)
from sessions.voice.items import Item, OutputAudio, OutputText
from sessions.voice.playout import Heard

ANSWER = "The capital of France is Paris."
ANSWER_MS = len(ANSWER) * MS_PER_CHARACTER


async def answered(client: VoiceClient) -> Item:
    await client.send(CreateResponse())
    done = await client.until(ResponseDone)
    await settle()
    return done.response.output[0]


async def interrupted_at(client: VoiceClient, played_ms: float) -> None:
    """What an interruption does, when so much has been played."""
    client.now_s += played_ms / 1000
    await client.send(ClearPlayback())
    await settle()


async def remembered(client: VoiceClient, item_id: str) -> OutputAudio:
    await client.send(RetrieveItem(item_id))
    part = (await client.until(ItemRetrieved)).item.parts[0]
    assert isinstance(part, OutputAudio)
    return part


async def read_by_the_model(client: VoiceClient) -> list[str]:
    await client.send(CreateResponse())
    await client.until(ResponseDone)
    thinking = client.graph.of("thinker")[-1].parameters["thinker"]
    assert isinstance(thinking, Generation)
    return [message.content for message in thinking.messages if message.role == "assistant"]


async def test_an_interruption_cuts_to_what_can_have_been_played() -> None:
    async with talking() as client:
        item = await answered(client)
        await interrupted_at(client, 1_000)
        assert await remembered(client, item.id) == OutputAudio("The capital of", 1_000)
        assert client.of(ItemTruncated) == client.of(PlaybackCleared) == []
        assert await read_by_the_model(client) == ["The capital of"]


async def test_an_answer_that_has_played_out_was_heard() -> None:
    async with talking() as client:
        item = await answered(client)
        await interrupted_at(client, ANSWER_MS + 100)
        assert await remembered(client, item.id) == OutputAudio(ANSWER, ANSWER_MS)


async def test_the_agent_has_the_floor_until_its_answer_has_played_out() -> None:
    playout = ClientPlayout(lambda: client.now_s)
    async with talking(playout=playout) as client:
        await answered(client)
        client.now_s += (ANSWER_MS - 1) / 1000
        assert playout.has_floor
        client.now_s += 0.002
        assert not playout.has_floor


@pytest.mark.parametrize(
    ("ended_ms", "transcript"), [(0, ""), (700, "The capital"), (1_800, "The capital of France is"), (10**6, ANSWER)]
)
async def test_the_clients_truncation_corrects_the_estimate_up_and_down(ended_ms: int, transcript: str) -> None:
    async with talking() as client:
        item = await answered(client)
        await interrupted_at(client, 1_000)
        await client.send(TruncateItem(item.id, 0, ended_ms))
        assert (await client.until(ItemTruncated)).audio_end_ms == min(ended_ms, ANSWER_MS)
        assert await remembered(client, item.id) == OutputAudio(transcript, min(ended_ms, ANSWER_MS))


async def test_a_second_truncation_takes_away_and_adds_nothing() -> None:
    async with talking() as client:
        item = await answered(client)
        await interrupted_at(client, 1_000)
        await client.send(TruncateItem(item.id, 0, 1_320), TruncateItem(item.id, 0, 1_800))
        assert (await remembered(client, item.id)).transcript == "The capital of France"
        await client.send(TruncateItem(item.id, 0, 700))
        assert (await remembered(client, item.id)).transcript == "The capital"
        assert [cut.audio_end_ms for cut in client.of(ItemTruncated)] == [1_320, 1_320, 700]


async def test_the_clients_own_word_beats_the_estimate() -> None:
    async with talking() as client:
        item = await answered(client)
        client.now_s += 0.5
        await client.send(AcknowledgePlayback(item.id, 0, 300))
        await interrupted_at(client, 1_000)
        assert await remembered(client, item.id) == OutputAudio("The", 300)
        await client.send(AcknowledgePlayback(item.id, 0, 720))
        assert await remembered(client, item.id) == OutputAudio("The capital", 720)
        await client.send(AcknowledgePlayback(item.id, 0, 400))
        assert await remembered(client, item.id) == OutputAudio("The capital", 720)


async def test_a_word_that_comes_after_the_interruption_corrects_the_estimate() -> None:
    async with talking() as client:
        item = await answered(client)
        await interrupted_at(client, 1_000)
        await client.send(AcknowledgePlayback(item.id, 0, 700))
        assert (await remembered(client, item.id)).transcript == "The capital"
        await client.send(TruncateItem(item.id, 0, 300), AcknowledgePlayback(item.id, 0, 1_800))
        assert (await remembered(client, item.id)).transcript == "The"


async def test_a_word_about_an_answer_that_was_not_interrupted_cuts_nothing() -> None:
    async with talking() as client:
        item = await answered(client)
        await client.send(AcknowledgePlayback(item.id, 0, 300))
        assert (await remembered(client, item.id)).transcript == ANSWER


async def test_an_onset_interrupts_what_the_client_still_plays() -> None:
    async with talking(settings=UNGUARDED, voice_config=config(SemanticVad())) as client:
        item = await answered(client)
        await client.say(960, 32)
        await client.until(SpeechStarted)
        heard = await remembered(client, item.id)
        assert heard.transcript in ("", "The", "The capital")
        assert 90 <= heard.duration_ms <= 970


async def test_a_client_that_truncates_has_fallen_silent() -> None:
    playout = ClientPlayout(lambda: client.now_s)
    async with talking(playout=playout) as client:
        item = await answered(client)
        await client.send(TruncateItem(item.id, 0, 300))
        assert not playout.has_floor


@pytest.mark.parametrize(
    ("wrong", "code", "field"),
    [
        (AcknowledgePlayback("nobody", 0, 10), "playback_invalid_item_id", "item_id"),
        (AcknowledgePlayback("item_1", 1, 10), "playback_invalid_index", "content_index"),
    ],
)
async def test_a_wrong_word_is_refused_by_name(wrong: Command, code: str, field: str) -> None:
    async with talking() as client:
        await answered(client)
        refused: CommandRefused = await client.refusal(wrong)
        assert (refused.code, refused.field) == (code, field)


async def test_an_answer_interrupted_while_it_is_made_shows_and_counts_what_was_heard() -> None:
    graph = FakeGraph()
    graph.hold("audio").step(1)
    async with talking(graph) as client:
        await client.send(CreateResponse())
        await client.until(AudioDelta)
        await settle()
        await interrupted_at(client, 720)
        done = (await client.until(ResponseDone)).response
        assert done.output[0].parts == (OutputAudio("The capital", 720),)
        assert done.usage is not None
        assert done.usage.output_audio_ms == 720


async def test_text_whose_sound_was_never_sent_was_never_heard() -> None:
    graph = FakeGraph()
    graph.hold("audio")
    async with talking(graph) as client:
        await client.send(CreateResponse())
        item = (await client.until(OutputItemAdded)).item
        await settle()
        await interrupted_at(client, 100)
        done = (await client.until(ResponseDone)).response
        assert done.usage is not None
        assert done.usage.output_audio_ms == 0
        assert await remembered(client, item.id) == OutputAudio("", 0)


async def test_a_cancelled_answer_plays_on_to_the_end_of_its_sound_and_no_further() -> None:
    graph = FakeGraph()
    graph.answers = [("The capital of France ", "is ", "Paris.")]
    graph.hold("audio").step(1)
    async with talking(graph) as client:
        await client.send(CreateResponse())
        await client.until(AudioDelta)
        await settle()
        await client.send(CancelResponse())
        item = (await client.until(ResponseDone)).response.output[0]
        assert item.parts == (OutputAudio("The capital of France", 22 * MS_PER_CHARACTER),)
        await client.send(TruncateItem(item.id, 0, 10_000))
        assert (await client.until(ItemTruncated)).audio_end_ms == 22 * MS_PER_CHARACTER


async def test_sound_that_nobody_had_read_was_not_heard() -> None:
    async with talking() as client:
        client.reading.clear()
        await client.send(CreateResponse())
        await settle()
        await client.send(ClearPlayback())
        client.reading.set()
        item = (await client.until(ResponseDone)).response.output[0]
        assert await remembered(client, item.id) == OutputAudio("", 0)


async def test_a_second_answer_waits_behind_the_first() -> None:
    async with talking() as client:
        first, second = await answered(client), await answered(client)
        await interrupted_at(client, 1_000)
        assert (await remembered(client, first.id)).transcript == "The capital of"
        assert (await remembered(client, second.id)).transcript == ""


async def test_an_answer_out_of_band_sounds_too_and_leaves_nothing() -> None:
    async with talking() as client:
        await client.send(CreateResponse(conversation="none"))
        aside = (await client.until(ResponseDone)).response.output[0]
        item = await answered(client)
        assert (await client.refusal(TruncateItem(aside.id, 0, 10))).field == "item_id"
        await interrupted_at(client, ANSWER_MS + 700)
        assert (await remembered(client, item.id)).transcript == "The capital"


async def test_a_deleted_answer_can_be_interrupted() -> None:
    async with talking() as client:
        item = await answered(client)
        await client.send(DeleteItem(item.id), AcknowledgePlayback(item.id, 0, 100))
        await interrupted_at(client, 1_000)
        assert (await client.refusal(RetrieveItem(item.id))).field == "item_id"
        assert await read_by_the_model(client) == []


async def test_where_the_server_plays_nobody_asks_the_client() -> None:
    async with talking(playout=FakePlayout()) as client:
        item = await answered(client)
        refused = await client.refusal(AcknowledgePlayback(item.id, 0, 10))
        assert (refused.code, refused.field) == ("unsupported", "type")


async def test_where_the_server_plays_the_client_can_only_take_away() -> None:
    playout = FakePlayout()
    async with talking(playout=playout) as client:
        item = await answered(client)
        playout.unfinished = (Heard("resp_1", item.id, 720),)
        await client.send(ClearPlayback(), TruncateItem(item.id, 0, 1_800))
        assert await remembered(client, item.id) == OutputAudio("The capital", 720)
        assert [cut.audio_end_ms for cut in client.of(ItemTruncated)] == [720, 720]
        await client.send(TruncateItem(item.id, 0, 300))
        assert await remembered(client, item.id) == OutputAudio("The", 300)
        playout.unfinished = (Heard("resp_1", item.id, 720),)
        await client.send(ClearPlayback())
        await settle()
        assert client.of(ItemTruncated)[-1].audio_end_ms == 300


@pytest.mark.parametrize("part", [OutputAudio("A long story about ships.", 0), OutputText("A long story about ships.")])
async def test_what_was_never_spoken_is_not_truncated(part: OutputAudio | OutputText) -> None:
    async with talking() as client:
        await client.send(CreateItem(Item(id="story", role="assistant", status="completed", parts=(part,))))
        refused = await client.refusal(TruncateItem("story", 0, 500))
        assert (refused.code, refused.field) == ("item_truncate_no_audio", "item_id")
        await client.send(RetrieveItem("story"))
        assert (await client.until(ItemRetrieved)).item.parts == (part,)
