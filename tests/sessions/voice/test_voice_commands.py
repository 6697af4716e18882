"""Manual mode, text items, responses by command, and refusals."""

import pytest

from engines.parameters import Generation
from fakes.graph import FakeGraph, silence, tone
from fakes.thinking import contents, said
from fakes.voice_client import config, settle, talking
from sessions.voice.commands import (
    AppendAudio,
    ClearAudio,
    Command,
    CommitAudio,
    Configure,
    CreateItem,
    CreateResponse,
    DeleteItem,
    RetrieveItem,
    TruncateItem,
)
from sessions.voice.config import SemanticVad
from sessions.voice.events import (
    AudioCleared,
    AudioCommitted,
    Configured,
    ItemAdded,
    ItemDone,
    ResponseCreated,
    ResponseDone,
    SpeechStopped,
    TextDelta,
    TranscriptCompleted,
)
from sessions.voice.items import InputAudio, InputText, Item, OutputText
from sessions.voice.settings import VoiceSettings


async def test_manual_turn() -> None:
    async with talking() as client:
        await client.send(AppendAudio(tone(500)), AppendAudio(tone(500)), CommitAudio())
        await client.until(TranscriptCompleted)
        assert client.names() == ["Opened", "AudioCommitted", "ItemAdded", "ItemDone", "TranscriptCompleted"]
        item = client.of(ItemDone)[0].item
        assert item.parts == (InputAudio(None, 1_000),)
        await client.send(CreateResponse())
        await client.until(ResponseDone)
        assert contents(client.graph) == [("system", "Be brief."), ("user", "What is the capital of France?")]


async def test_a_response_asked_for_at_once_waits_for_the_transcript() -> None:
    graph = FakeGraph()
    gate = graph.hold("transcript")
    async with talking(graph) as client:
        await client.send(AppendAudio(tone(500)), CommitAudio(), CreateResponse())
        await client.until(ResponseCreated)
        assert graph.of("thinker") == []
        gate.release()
        await client.until(ResponseDone)
        assert contents(graph)[1] == ("user", "What is the capital of France?")


@pytest.mark.parametrize(("samples", "accepted"), [(0, False), (99 * 24, False), (100 * 24, True)])
async def test_commit_needs_100_ms(samples: int, accepted: bool) -> None:
    async with talking() as client:
        if samples:
            await client.send(AppendAudio(bytes(2 * samples)))
        if accepted:
            await client.send(CommitAudio())
            await client.until(AudioCommitted)
        else:
            refused = await client.refusal(CommitAudio())
            assert refused.code == "input_audio_buffer_commit_empty"
            assert "at least 100 ms" in refused.message


async def test_an_odd_byte_is_carried_over() -> None:
    pcm = tone(200)
    async with talking() as client:
        await client.send(AppendAudio(pcm[:1_001]), AppendAudio(pcm[1_001:]), CommitAudio())
        await client.until(TranscriptCompleted)
        request = client.graph.of("vad")[0]
        assert client.graph.pushed[request.request_id][0].arrays["pcm"].data == pcm


async def test_clear_forgets_audio_and_odd_byte() -> None:
    async with talking() as client:
        await client.send(AppendAudio(tone(500) + b"\x01"), ClearAudio())
        await client.until(AudioCleared)
        await client.send(AppendAudio(tone(150)), CommitAudio())
        await client.until(TranscriptCompleted)
        request = client.graph.of("vad")[0]
        assert client.graph.pushed[request.request_id][0].arrays["pcm"].data == tone(150)


async def test_a_full_buffer_refuses_and_the_session_goes_on() -> None:
    async with talking(settings=VoiceSettings(maximum_buffer_ms=1_000)) as client:
        await client.send(AppendAudio(tone(900)))
        refused = await client.refusal(AppendAudio(tone(200)))
        assert (refused.code, refused.field) == ("input_audio_buffer_full", "audio")
        await client.send(CommitAudio(), AppendAudio(tone(900)))


async def test_commit_in_the_middle_of_a_turn_ends_it_without_an_answer() -> None:
    async with talking(voice_config=config(SemanticVad())) as client:
        await client.say(640)
        await client.send(CommitAudio())
        await client.until(TranscriptCompleted)
        await client.say(0, 1_500)
        assert client.of(ResponseCreated) == []
        assert client.of(SpeechStopped)[0].audio_end_ms == 640
        await client.say(960, 960)
        await client.until(ResponseDone)
        assert len(client.of(AudioCommitted)) == 2


async def test_commit_of_heard_silence_under_vad_is_empty() -> None:
    async with talking(voice_config=config(SemanticVad())) as client:
        await client.say(0, 960)
        assert (await client.refusal(CommitAudio())).code == "input_audio_buffer_commit_empty"


async def test_commit_under_vad_takes_what_was_not_heard_yet() -> None:
    async with talking(voice_config=config(SemanticVad())) as client:
        await client.send(AppendAudio(tone(1_000)), CommitAudio())
        await client.until(TranscriptCompleted)
        await client.say(0, 1_500)
        assert len(client.of(AudioCommitted)) == 1
        assert client.of(ItemDone)[0].item.parts == (InputAudio(None, 1_000),)


async def test_clear_in_the_middle_of_a_turn_drops_it() -> None:
    async with talking(voice_config=config(SemanticVad())) as client:
        await client.say(640)
        await client.send(ClearAudio())
        await client.say(0, 1_500)
        assert client.names() == ["Opened", "SpeechStarted", "SpeechStopped", "AudioCleared"]
        await client.say(960, 960)
        await client.until(ResponseDone)


async def test_text_in_text_out() -> None:
    async with talking(voice_config=config(modality="text")) as client:
        await client.send(said("Hello?", "mine"), CreateResponse())
        done = await client.until(ResponseDone)
        assert done.response.output[0].parts == (OutputText("The capital of France is Paris."),)
        assert client.graph.of("thinker")[0].outputs == ("text",)
        assert not any(delta.spoken for delta in client.of(TextDelta))
        assert "AudioDone" not in client.names()
        assert contents(client.graph) == [("system", "Be brief."), ("user", "Hello?")]
        assert client.of(ItemAdded)[0].item.id == "mine"
        assert done.response.timing is not None
        assert done.response.timing.rtf is None


async def test_the_whole_conversation_is_the_prompt_and_its_beginning_stays() -> None:
    graph = FakeGraph()
    graph.answers = [("One.",), ("Two.",)]
    async with talking(graph, voice_config=config(modality="text")) as client:
        for text in ("First?", "Second?"):
            await client.send(said(text), CreateResponse())
            await client.until(ResponseDone)
        assert contents(graph, 0) == [("system", "Be brief."), ("user", "First?")]
        assert contents(graph, 1) == [*contents(graph, 0), ("assistant", "One."), ("user", "Second?")]


async def test_one_response_at_a_time() -> None:
    graph = FakeGraph()
    gate = graph.hold("text")
    async with talking(graph) as client:
        await client.send(CreateResponse())
        refused = await client.refusal(CreateResponse())
        assert refused.code == "conversation_already_has_active_response"
        gate.release()
        await client.until(ResponseDone)


async def test_out_of_band_runs_beside_and_leaves_nothing() -> None:
    graph = FakeGraph()
    gate = graph.hold("text")
    question = Item(id="", role="user", status="completed", parts=(InputText("Classify."),))
    async with talking(graph) as client:
        await client.send(said("Hello?"), CreateResponse())
        await client.send(CreateResponse(conversation="none", modality="text", input=(question,), metadata={"topic": "x"}))
        await settle()
        assert contents(graph, 1) == [("system", "Be brief."), ("user", "Classify.")]
        gate.release()
        first, second = await client.until(ResponseDone), await client.until(ResponseDone)
        assert {first.response.conversation, second.response.conversation} == {"auto", "none"}
        out_of_band = first.response if first.response.conversation == "none" else second.response
        assert out_of_band.metadata == {"topic": "x"}
        refused = await client.refusal(RetrieveItem(out_of_band.output[0].id))
        assert refused.code == "item_retrieve_invalid_item_id"


async def test_out_of_band_is_bounded() -> None:
    graph = FakeGraph()
    gate = graph.hold("text")
    async with talking(graph) as client:
        for _ in range(4):
            await client.send(CreateResponse(conversation="none"))
        assert (await client.refusal(CreateResponse(conversation="none"))).code == "too_many_responses"
        gate.release()
        await settle()
        await client.send(CreateResponse(conversation="none"))


@pytest.mark.parametrize(
    ("in_session", "in_command", "modality", "expected"),
    [(None, None, "audio", 120), (None, None, "text", None), (50, None, "audio", 50), (50, 7, "text", 7)],
)
async def test_token_limits(in_session: int | None, in_command: int | None, modality: str, expected: int | None) -> None:
    graph = FakeGraph()
    graph.finish_reason = "length"
    async with talking(graph, voice_config=config(modality=modality, max_output_tokens=in_session)) as client:
        await client.send(CreateResponse(max_output_tokens=in_command, instructions="Now.", temperature=0.5))
        done = await client.until(ResponseDone)
        assert (done.response.status, done.response.reason) == ("incomplete", "max_output_tokens")
        thinking = graph.of("thinker")[0].parameters["thinker"]
        assert isinstance(thinking, Generation)
        assert (thinking.max_tokens, thinking.temperature, thinking.repetition_penalty) == (expected, 0.5, 1.1)
        assert contents(graph) == [("system", "Now.")]


@pytest.mark.parametrize(
    ("command", "code", "field"),
    [
        (TruncateItem("u", 0, 100), "item_truncate_invalid_role", "item_id"),
        (TruncateItem("nobody", 0, 100), "item_truncate_invalid_item_id", "item_id"),
        (DeleteItem("nobody"), "item_delete_invalid_item_id", "item_id"),
        (RetrieveItem("nobody"), "item_retrieve_invalid_item_id", "item_id"),
        (said("again", "u"), "item_create_duplicate_id", "item.id"),
        (
            CreateItem(Item(id="x", role="user", status="completed", parts=()), "nobody"),
            "item_create_invalid_previous_item_id",
            "previous_item_id",
        ),
        (
            CreateItem(Item(id="x", role="user", status="completed", parts=(OutputText("x"),))),
            "invalid_value",
            "item.content[0].type",
        ),
        (
            CreateItem(Item(id="x", role="user", status="completed", parts=(InputAudio(None, 5),))),
            "invalid_value",
            "item.content[0].transcript",
        ),
        (CreateResponse(voice="nobody"), "invalid_voice", "voice"),
        (Configure(config(voice="nobody")), "invalid_voice", "voice"),
    ],
)
async def test_refusals_name_the_field_and_change_nothing(command: Command, code: str, field: str) -> None:
    async with talking() as client:
        await client.send(said("Hello?", "u"))
        refused = await client.refusal(command)
        assert (refused.code, refused.field) == (code, field)
        await client.send(CreateResponse())
        assert (await client.until(ResponseDone)).response.status == "completed"
        assert contents(client.graph)[1:] == [("user", "Hello?")]


async def test_a_voice_that_is_not_deployed_is_refused() -> None:
    async with talking(FakeGraph(missing=("narration",))) as client:
        refused = await client.refusal(Configure(config(voice="heart")))
        assert "expected one of joe, got 'heart'" in refused.message
        await client.send(Configure(config(voice="heart", modality="text")))
        await client.until(Configured)


async def test_silence_committed_by_hand_has_an_empty_transcript() -> None:
    graph = FakeGraph()
    graph.transcripts = [""]
    async with talking(graph) as client:
        await client.send(AppendAudio(silence(500)), CommitAudio(), CreateResponse())
        assert (await client.until(ResponseDone)).response.status == "completed"
        assert contents(graph) == [("system", "Be brief.")]
