"""The small parts: audio buffer, event queue, stop scope, conversation's bound."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessions.voice.audio_buffer import AudioBuffer
from sessions.voice.config import VoiceConfig
from sessions.voice.conversation import Conversation, Sound
from sessions.voice.event_queue import EventQueue
from sessions.voice.events import AudioDelta, Event, ItemDeleted, Opened, Overtaken, SessionError, TranscriptFailed
from sessions.voice.items import InputText, Item, OutputAudio
from sessions.voice.resync import told
from sessions.voice.spoken import Spoken
from sessions.voice.stop_scope import StopScope

OPENED = Opened(VoiceConfig(model="voice", instructions="", voice="joe"))
SOUND = AudioDelta("resp", "item", b"", 0.0)
DONE, FAILED = TranscriptFailed("item", 0, "lost"), SessionError("lost", "lost")


@given(st.lists(st.binary(max_size=9), max_size=30), st.integers(0, 60), st.integers(0, 60), st.integers(0, 60))
def test_the_buffer_is_a_window_on_what_was_appended(pieces: list[bytes], forgotten: int, start: int, end: int) -> None:
    buffer, whole = AudioBuffer(), b"".join(pieces)
    for number, piece in enumerate(pieces):
        buffer.append(piece, float(number))
    assert buffer.end == len(whole) // 2
    buffer.forget_before(forgotten)
    first = max(start, min(forgotten, buffer.end))
    assert buffer.between(start, end) == whole[: 2 * buffer.end][2 * first : 2 * max(end, first)]


def test_the_buffer_knows_when_a_sample_came() -> None:
    buffer = AudioBuffer()
    assert buffer.arrived_at(0) is None
    for number in range(1, 4):
        buffer.append(bytes(200), float(number))
    assert [buffer.arrived_at(sample) for sample in (1, 100, 101, 300, 999)] == [1, 1, 2, 3, 3]
    buffer.forget_before(250)
    assert buffer.arrived_at(1) == 3


async def taken(queue: EventQueue, last: Event | None = None) -> list[Event]:
    """What its next reader gets, up to `last` or the end."""
    seen: list[Event] = []
    async for group in queue.read():
        seen += group
        if last in group:
            break
    return seen


async def test_the_queue_blocks_when_full_and_ends_after_what_it_holds() -> None:
    queue = EventQueue(2, told)
    await queue.put(ItemDeleted("1"))
    await queue.put(SOUND)
    third = asyncio.create_task(queue.put(ItemDeleted("3")))
    await asyncio.sleep(0)
    assert not third.done()
    assert queue.drop(lambda sound: sound is SOUND) == [SOUND]
    await third
    queue.close()
    assert await taken(queue) == [ItemDeleted("1"), ItemDeleted("3")]


async def test_what_is_ready_is_taken_together_and_sound_alone() -> None:
    queue = EventQueue(9, told)
    await queue.put(DONE, FAILED, SOUND, DONE)
    queue.close()
    assert [group async for group in queue.read(9)] == [(DONE, FAILED), (SOUND,), (DONE,)]


async def test_sound_that_a_reader_has_is_not_taken_back_until_it_is_gone_and_then_is_the_next_ones() -> None:
    queue = EventQueue(2, told)
    await queue.put(SOUND)
    reader = queue.read()
    assert await anext(reader) == (SOUND,)
    assert queue.drop(lambda event: True) == []
    queue.pause()
    queue.begin_with(ItemDeleted("snapshot"), is_snapshot=True)
    queue.close()
    assert await taken(queue) == [ItemDeleted("snapshot"), SOUND]
    assert [group async for group in reader] == []


async def test_between_two_readers_nothing_is_lost_and_what_a_snapshot_tells_is_not_told_again() -> None:
    for is_snapshot in (False, True):
        queue = EventQueue(3, told)
        await queue.put(DONE, ItemDeleted("told"))
        queue.pause()
        queue.begin_with(OPENED, is_snapshot=is_snapshot)
        queue.close()
        deleted = ItemDeleted("told")
        assert await taken(queue) == [OPENED, DONE, Overtaken(deleted) if is_snapshot else deleted]


async def test_what_waits_for_room_and_is_told_by_the_snapshot_is_not_told_again() -> None:
    queue = EventQueue(1, told)
    await queue.put(DONE)
    waiting = [asyncio.create_task(queue.put(event)) for event in (ItemDeleted("told"), FAILED)]
    await asyncio.sleep(0)
    queue.pause()
    queue.begin_with(OPENED, is_snapshot=True)
    assert await taken(queue, FAILED) == [OPENED, DONE, Overtaken(ItemDeleted("told")), FAILED]
    await asyncio.gather(*waiting)


async def test_of_what_belongs_together_a_snapshot_tells_all_or_nothing() -> None:
    queue = EventQueue(1, told)
    await queue.put(DONE)
    waiting = asyncio.create_task(queue.put(ItemDeleted("told"), ItemDeleted("told, too"), FAILED))
    await asyncio.sleep(0)
    queue.pause()
    queue.begin_with(OPENED, is_snapshot=True)
    both = [Overtaken(ItemDeleted(name)) for name in ("told", "told, too")]
    assert await taken(queue, FAILED) == [OPENED, DONE, *both, FAILED]
    await waiting


async def test_what_belongs_together_stays_together_while_its_producer_waits() -> None:
    queue = EventQueue(1, told)
    puts = [(DONE, ItemDeleted("1"), ItemDeleted("2")), (FAILED,)]
    waiting = [asyncio.create_task(queue.put(*events)) for events in puts]
    await asyncio.sleep(0)
    assert await taken(queue, FAILED) == [DONE, ItemDeleted("1"), ItemDeleted("2"), FAILED]
    await asyncio.gather(*waiting)


async def test_a_stopped_block_ends_and_its_task_goes_on() -> None:
    scope, steps = StopScope(), list[str]()

    async def work() -> str:
        with scope:
            steps.append("began")
            await asyncio.Event().wait()
        await asyncio.sleep(0)
        return scope.reason

    task = asyncio.create_task(work())
    await asyncio.sleep(0)
    scope.stop("client_cancelled")
    scope.stop("turn_detected")
    assert await task == "client_cancelled"
    assert steps == ["began"]


async def test_the_tasks_own_cancellation_passes_through_a_stopped_block() -> None:
    scope = StopScope()

    async def work() -> None:
        with scope:
            await asyncio.Event().wait()

    task = asyncio.create_task(work())
    await asyncio.sleep(0)
    scope.stop("client_cancelled")
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


def test_the_oldest_item_leaves_a_full_conversation() -> None:
    conversation = Conversation(2)
    for item_id in "abc":
        conversation.add(Item(id=item_id, role="user", status="completed", parts=(InputText(item_id),)))
    assert [entry.item.id for entry in conversation.entries] == ["b", "c"]
    assert conversation.before("b") is None


def test_the_sound_of_items_that_have_left_counts() -> None:
    conversation = Conversation(2)
    for item_id in "abc":
        spoken = Spoken(characters_per_second=15)
        spoken.add(0, 5, 1_000, complete=True)
        item = Item(id=item_id, role="assistant", status="completed", parts=(OutputAudio("Well.", 1_000),))
        conversation.add(item, spoken=spoken)
        conversation.cut(item_id, 250, "sent")
    conversation.delete("b")
    assert conversation.sound == Sound(3_000, 750)
