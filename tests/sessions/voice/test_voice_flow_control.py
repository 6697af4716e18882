"""A slow reader stops its own answer and nothing else; whatever a client does, the session lives."""

import asyncio
import contextlib

import msgspec
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from fakes.graph import FakeGraph, silence, tone
from fakes.voice_client import UNGUARDED, VoiceClient, config, settle, talking
from sessions.voice.commands import (
    AppendAudio,
    CancelResponse,
    ClearAudio,
    Command,
    CommandRefused,
    CommitAudio,
    Configure,
    CreateItem,
    CreateResponse,
    DeleteItem,
    RetrieveItem,
    TruncateItem,
)
from sessions.voice.config import SemanticVad, ServerVad, TurnDetection
from sessions.voice.events import (
    AudioDelta,
    Event,
    ItemAdded,
    ItemRetrieved,
    Opened,
    OutputItemAdded,
    OutputItemDone,
    Reopened,
    ResponseCreated,
    ResponseDone,
    SpeechStarted,
    TranscriptCompleted,
)
from sessions.voice.items import InputText, Item, OutputAudio
from sessions.voice.settings import VoiceSettings


async def test_a_slow_reader_stops_its_own_answer_only() -> None:
    graph = FakeGraph()
    graph.answers = [tuple(f"Sentence {number}. " for number in range(50))]
    async with talking(graph, settings=VoiceSettings(event_queue=8)) as slow, talking() as other:
        slow.reading.clear()
        await slow.send(CreateResponse())
        await settle()
        held = len(slow.events)
        taken = graph.streams[0].timing()["thinker"].chunks
        assert taken <= held + 8
        await other.send(CreateResponse())
        assert (await other.until(ResponseDone)).response.status == "completed"
        assert graph.streams[0].timing()["thinker"].chunks == taken
        slow.reading.set()
        assert (await slow.until(ResponseDone)).response.status == "completed"
        assert len(slow.of(AudioDelta)) == 50


async def test_barge_in_takes_back_sound_that_a_slow_reader_has_not_read() -> None:
    graph = FakeGraph()
    graph.answers = [tuple(f"Sentence {number}. " for number in range(50))]
    async with talking(
        graph, settings=msgspec.structs.replace(UNGUARDED, event_queue=40), voice_config=config(SemanticVad())
    ) as client:
        await client.say(960, 200)
        client.reading.clear()
        await client.say(0, 720)
        await client.say(100)
        read = len(client.of(AudioDelta))
        client.reading.set()
        assert (await client.until(ResponseDone)).response.status == "cancelled"
        assert len(client.of(AudioDelta)) == read


class Told(msgspec.Struct):
    """Items that a snapshot tells, and those that events add to it."""

    known: set[str]
    added: list[str]

    def hear(self, event: Event) -> None:
        match event:
            case Reopened(items=items):
                self.known |= {item.id for item in items}
            case ItemAdded(item=item):
                self.added.append(item.id)
            case _:
                pass


async def test_an_interruption_takes_back_the_unread_sound_of_what_the_user_was_told_only() -> None:
    """Both answers are complete. What was made out of band is the client's own business."""
    async with talking(settings=UNGUARDED, voice_config=config(SemanticVad(create_response=False))) as client:
        client.reading.clear()
        for conversation in ("auto", "none"):
            await client.send(CreateResponse(conversation=conversation))
            await settle()
        await client.send(AppendAudio(tone(320)))
        await settle()
        client.reading.set()
        told = [(await client.until(ResponseDone)).response for _ in range(2)]
        assert [response.status for response in told] == ["completed", "completed"]
        assert {sound.response_id for sound in client.of(AudioDelta)} == {told[1].id}
        await client.until(SpeechStarted)
        item_id = told[0].output[0].id
        await client.send(RetrieveItem(item_id))
        assert (await client.until(ItemRetrieved)).item.parts == (OutputAudio("", 0),)


async def test_an_answer_stopped_while_it_is_announced_is_announced_and_closed() -> None:
    """A slow reader has room for a part of what belongs together only."""
    for size in range(1, 6):
        async with talking(settings=VoiceSettings(event_queue=size)) as client:
            client.reading.clear()
            asking = asyncio.create_task(client.send(CreateResponse()))
            await settle()
            await client.send(CancelResponse())
            await settle()
            client.reading.set()
            await asking
            done = await client.until(ResponseDone)
            assert done.response.status == "cancelled"
            names = [name for name in client.names() if "Item" in name]
            assert names in ([], ["OutputItemAdded", "ItemAdded", "ItemDone", "OutputItemDone"])
            assert len(done.response.output) == len(names) // 4


async def test_whoever_comes_while_an_item_waits_to_be_announced_is_told_of_it_once() -> None:
    for size in range(1, 6):
        async with talking(settings=VoiceSettings(event_queue=size)) as client:
            client.reading.clear()
            asking = asyncio.create_task(client.send(CreateResponse()))
            await settle()
            client.session.detach()
            client.session.attach(8, None)
            client.reading.set()
            told = Told(set(), [])
            async for event in client.session.events():
                told.hear(event)
                if isinstance(event, ResponseDone):
                    break
            await asking
            assert len(told.added) == len(set(told.added))
            assert not told.known & set(told.added)


async def test_an_item_is_added_before_its_transcript_comes_however_slow_the_reader() -> None:
    for size in (1, 2, 3):
        async with talking(settings=VoiceSettings(event_queue=size)) as client:
            client.reading.clear()
            await client.send(AppendAudio(tone(500)))
            committing = asyncio.create_task(client.send(CommitAudio()))
            await settle()
            client.reading.set()
            await committing
            await client.until(TranscriptCompleted)
            assert client.names()[1:] == ["AudioCommitted", "ItemAdded", "ItemDone", "TranscriptCompleted"]


async def test_a_session_may_be_left_while_its_reader_is_stuck() -> None:
    graph = FakeGraph()
    graph.answers = [tuple(f"Sentence {number}. " for number in range(50))]
    async with talking(graph, settings=VoiceSettings(event_queue=2)) as client:
        client.reading.clear()
        await client.send(CreateResponse())
        await settle()
        assert graph.open_requests == 1


def _said(item_id: str, text: str, previous: str | None) -> Command:
    return CreateItem(Item(id=item_id, role="user", status="completed", parts=(InputText(text),)), previous)


def _configured(detection: TurnDetection) -> Command:
    return Configure(config(detection))


ITEM_IDS = st.sampled_from(["a", "b", "item_1", "item_2", "item_3", "nobody"])
COMMANDS: st.SearchStrategy[Command] = st.one_of(
    st.builds(AppendAudio, st.sampled_from([tone(100), tone(700), silence(300), silence(1_500), b"\x01", b""])),
    st.just(CommitAudio()),
    st.just(ClearAudio()),
    st.builds(CreateResponse, conversation=st.sampled_from(["auto", "none"]), modality=st.sampled_from(["audio", "text", None])),
    st.builds(CancelResponse, st.sampled_from([None, "resp_1", "nobody"])),
    st.builds(TruncateItem, ITEM_IDS, st.integers(0, 1), st.integers(-10, 5_000)),
    st.builds(DeleteItem, ITEM_IDS),
    st.builds(RetrieveItem, ITEM_IDS),
    st.builds(_said, st.sampled_from(["", "a", "b"]), st.text(max_size=5), st.none() | st.just("root") | ITEM_IDS),
    st.builds(
        _configured,
        st.sampled_from([None, SemanticVad(), ServerVad(interrupt_response=False), SemanticVad(create_response=False)]),
    ),
)
SCRIPT = st.lists(st.tuples(COMMANDS, st.integers(0, 30)), max_size=25)


async def _follow(client: VoiceClient, script: list[tuple[Command, int]]) -> None:
    for command, turns in script:
        with contextlib.suppress(CommandRefused):
            await client.send(command)
        for _ in range(turns):
            await asyncio.sleep(0)


def _check_order(client: VoiceClient) -> None:
    """Every answer is announced, its item closed, and it is over once; one at a time in the conversation."""
    live: str | None = None
    opened: set[str] = set()
    over: set[str] = set()
    assert isinstance(client.events[0], Opened)
    for event in client.events:
        match event:
            case ResponseCreated(response=response):
                assert response.id not in over
                if response.conversation == "auto":
                    assert live is None
                    live = response.id
            case OutputItemAdded(response_id=response_id):
                opened.add(response_id)
            case OutputItemDone(response_id=response_id):
                opened.remove(response_id)
            case AudioDelta(response_id=response_id):
                assert response_id in opened
            case ResponseDone(response=response):
                assert response.id not in opened
                assert response.id not in over
                over.add(response.id)
                live = None if response.id == live else live
            case _:
                pass


@hypothesis_settings(max_examples=60, deadline=None)
@given(SCRIPT, st.sampled_from(["activity", "transcript", "text", "audio", "end_of_turn", ""]), st.integers(0, 3))
def test_commands_in_any_order_never_break_the_session(script: list[tuple[Command, int]], failing: str, after: int) -> None:
    async def run() -> None:
        graph = FakeGraph()
        if failing:
            graph.fail(failing, after=after)
        async with talking(graph, voice_config=config(SemanticVad())) as client:
            await _follow(client, script)
            await settle()
            await client.send(CancelResponse(), Configure(config(None)), ClearAudio())
            await settle()
            await client.send(CreateResponse())
            await client.until(ResponseDone, lambda done: done.response.status in ("completed", "failed"))
            await settle()
        _check_order(client)

    asyncio.run(run())


async def test_listening_may_be_switched_off_and_on_in_one_breath() -> None:
    """The old feed wakes up once more before it is cancelled, and finds a buffer that has moved on."""
    async with talking(voice_config=config(SemanticVad())) as client:
        await client.send(
            AppendAudio(silence(3_000)),
            Configure(config()),
            AppendAudio(silence(3_000)),
            Configure(config(SemanticVad())),
            AppendAudio(silence(100)),
        )
        await client.say(960, 1_280)
        assert (await client.until(ResponseDone)).response.status == "completed"


async def test_a_burst_of_turns_is_recognised_two_at_a_time() -> None:
    """A client that sends minutes at once waits for itself: the stage's other slots are for others."""
    graph = FakeGraph()
    gate = graph.hold("transcript")
    async with talking(graph, voice_config=config(SemanticVad(create_response=False))) as client:
        await client.say(*[960, 960] * 5)
        assert len(graph.of("asr")) == 2
        gate.release()
        await settle()
        assert len(graph.of("asr")) == 5
        assert len(client.of(TranscriptCompleted)) == 5
