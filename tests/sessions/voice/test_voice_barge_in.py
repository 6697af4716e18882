"""The user speaks while the assistant does, every guard off."""

import asyncio

import msgspec
import pytest

from engines.parameters import Generation
from fakes.graph import FakeGraph, tone
from fakes.voice_client import UNGUARDED, config, settle, talking
from sessions.voice.commands import AppendAudio, CancelResponse, CreateResponse, TruncateItem
from sessions.voice.config import SemanticVad, ServerVad
from sessions.voice.events import (
    AudioDelta,
    ItemTruncated,
    OutputItemDone,
    ResponseCreated,
    ResponseDone,
    SessionError,
    SpeechStarted,
    TextDelta,
)

LONG_ANSWER = tuple(f"This is sentence {number}. " for number in range(20))


def long_winded() -> FakeGraph:
    graph = FakeGraph()
    graph.answers = [LONG_ANSWER]
    return graph


@pytest.mark.parametrize("phase", range(0, 40, 2))
async def test_onset_cancels_at_any_phase_and_nothing_stale_follows(phase: int) -> None:
    graph = long_winded()
    gate = graph.hold("audio")
    graph.hold("text").step(1 + phase // 2)
    gate.step(phase // 2)
    async with talking(graph, UNGUARDED, config(SemanticVad())) as client:
        await client.say(960, 960)
        await client.until(ResponseCreated)
        await client.say(100)
        await client.until(SpeechStarted)
        done = await client.until(ResponseDone)
        assert (done.response.status, done.response.reason) == ("cancelled", "turn_detected")
        assert graph.aborted == [graph.of("thinker")[0].request_id]
        gate.release()
        graph.hold("text").release()
        await settle()
        after = client.events[client.events.index(done) :]
        assert [event for event in after if isinstance(event, AudioDelta | TextDelta)] == []
        assert done.response.output[0].status == "incomplete"
        await client.say(860, 960)
        assert (await client.until(ResponseDone)).response.status == "completed"
        assert graph.of("thinker")[1].epoch > graph.of("thinker")[0].epoch
        assert graph.of("asr")[-1].epoch > graph.of("asr")[0].epoch + 1  # the interruption itself began another


@pytest.mark.parametrize("head_start", [True, False])
async def test_the_engines_are_told_before_the_client(head_start: bool) -> None:
    """Nobody reads, and the queue has no room for the closing events."""
    graph = long_winded()
    graph.hold("audio")
    async with talking(
        graph, msgspec.structs.replace(UNGUARDED, head_start=head_start, event_queue=2), config(SemanticVad())
    ) as client:
        await client.say(960, 960)
        client.reading.clear()
        await client.send(AppendAudio(tone(100)))
        await settle()
        assert graph.aborted == [graph.of("thinker")[0].request_id]
        client.reading.set()
        names = client.names()
        await client.until(ResponseDone)
        names = client.names()
        assert names.index("SpeechStarted", names.index("ResponseCreated")) < names.index("ResponseDone")


async def test_interrupt_response_false_lets_it_run() -> None:
    graph = long_winded()
    gate = graph.hold("audio")
    async with talking(graph, voice_config=config(ServerVad(interrupt_response=False, create_response=True))) as client:
        await client.say(960, 960)
        await client.say(960, 960)
        assert client.of(ResponseDone) == []
        assert [error.code for error in client.of(SessionError)] == ["conversation_already_has_active_response"]
        gate.release()
        assert (await client.until(ResponseDone)).response.status == "completed"


async def test_speaking_on_before_the_answer_began_joins_both_turns() -> None:
    graph = FakeGraph()
    graph.transcripts = ["I would like", "a coffee."]
    gate = graph.hold("transcript")
    async with talking(graph, UNGUARDED, config(SemanticVad())) as client:
        await client.say(960, 960)
        await client.say(100)
        gate.release()
        await settle()
        assert client.of(ResponseCreated) == []
        await client.say(860, 960)
        await client.until(ResponseDone)
        thinking = graph.of("thinker")[-1].parameters["thinker"]
        assert isinstance(thinking, Generation)
        assert [message.content for message in thinking.messages[1:]] == ["I would like", "a coffee."]


async def test_cancel_by_the_client_and_cancel_when_nothing_runs() -> None:
    graph = long_winded()
    gate = graph.hold("audio")
    gate.step(2)
    async with talking(graph) as client:
        await client.send(CancelResponse(), CancelResponse("resp_unknown"))
        await client.send(CreateResponse())
        await settle()
        await client.send(CancelResponse("resp_unknown"))
        await client.send(CancelResponse(), CancelResponse())
        done = await client.until(ResponseDone)
        assert (done.response.status, done.response.reason) == ("cancelled", "client_cancelled")
        await client.send(CancelResponse())
        gate.release()
        await client.send(CreateResponse())
        assert (await client.until(ResponseDone)).response.status == "completed"


async def test_a_new_answer_right_after_a_cancel_waits_for_the_old_ones_last_event() -> None:
    graph = long_winded()
    graph.hold("audio")
    async with talking(graph) as client:
        await client.send(CreateResponse())
        await settle()
        await client.send(CancelResponse(), CreateResponse())
        await settle()
        names = [name for name in client.names() if name in ("ResponseCreated", "ResponseDone")]
        assert names == ["ResponseCreated", "ResponseDone", "ResponseCreated"]
        await client.send(CancelResponse())


async def test_cancel_before_the_thinker_has_admitted_it() -> None:
    graph = long_winded()
    graph.hold_submit("thinker")
    async with talking(graph) as client:
        await client.send(CreateResponse(), CancelResponse())
        done = await client.until(ResponseDone)
        assert done.response.status == "cancelled"
        await client.send(CreateResponse())
        await settle()
        await client.send(CancelResponse())
        done = await client.until(ResponseDone)
        assert (done.response.status, done.response.output) == ("cancelled", ())


async def test_truncation_after_a_barge_in_leaves_what_was_heard_in_the_history() -> None:
    graph = FakeGraph()
    graph.answers = [("The first part, ", "and then the second part."), ("Fine.",)]
    graph.hold("audio").step(2)
    async with talking(graph, UNGUARDED, config(SemanticVad())) as client:
        await client.say(960, 960)
        await client.until(ResponseCreated)
        await client.say(100)
        cut = await client.until(OutputItemDone)
        await client.send(TruncateItem(cut.item.id, 0, 16 * 60 + 9 * 60))
        assert (await client.until(ItemTruncated)).audio_end_ms == 16 * 60 + 9 * 60
        graph.hold("audio").release()
        await client.say(860, 960)
        await client.until(ResponseDone, lambda done: done.response.status == "completed")
        thinking = graph.of("thinker")[1].parameters["thinker"]
        assert isinstance(thinking, Generation)
        assert [(message.role, message.content) for message in thinking.messages[1:]] == [
            ("user", "What is the capital of France?"),
            ("assistant", "The first part, and then"),
            ("user", "What is the capital of France?"),
        ]


@pytest.mark.parametrize("steps", range(0, 60, 3))
async def test_the_owner_is_cancelled_in_every_phase(steps: int) -> None:
    graph = long_winded()
    graph.hold("audio").step(3)

    async def own() -> None:
        async with talking(graph, UNGUARDED, config(SemanticVad())) as client:
            for _ in range(40):
                await client.say(960, 960)

    before = asyncio.all_tasks()
    owner = asyncio.create_task(own())
    for _ in range(steps * 120):
        await asyncio.sleep(0)
    owner.cancel()
    with pytest.raises(asyncio.CancelledError):
        await owner
    assert graph.open_requests == 0
    assert asyncio.all_tasks() - before == set()
