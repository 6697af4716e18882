"""What is special about shared memory: no copies out, when bytes are used again, and what happens when somebody dies."""

import gc
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from engines.connectors import PayloadLost, PayloadTooLarge
from engines.connectors.arena import ENTRY_BYTES, LANES, PAGE_BYTES
from engines.connectors.contents import Content, Inline, Key, Outline, Place, Shared
from engines.connectors.entries import MOST_MARKS
from engines.connectors.inline import INLINE_LIMIT_BYTES
from engines.connectors.shared_memory import INLINE_BELOW_BYTES, SharedMemoryConnector
from engines.payloads import Array, Payload
from fakes.payload_process import ARENA_BYTES, payload_process

CAPACITY_BYTES = 64 * PAGE_BYTES


@pytest.fixture
def producer() -> Iterator[SharedMemoryConnector]:
    connector = SharedMemoryConnector(CAPACITY_BYTES)
    yield connector
    connector.close()


@pytest.fixture
def consumer() -> Iterator[SharedMemoryConnector]:
    connector = SharedMemoryConnector(0)
    yield connector
    connector.close()


def filled(fill: int, nbytes: int = 5 * PAGE_BYTES) -> Payload:
    return Payload(arrays={"bytes": Array.of(np.full(nbytes, fill, np.uint8))})


def values(payload: Payload) -> NDArray[np.generic]:
    return payload.arrays["bytes"].numpy()


def shared(content: Content) -> Shared:
    assert isinstance(content, Shared)
    return content


def has_room_for_everything(connector: SharedMemoryConnector) -> bool:
    content = connector.put(Key("everything", 0), filled(0, CAPACITY_BYTES))
    connector.cleanup("everything")
    return isinstance(content, Shared)


def mappings(arena: str) -> list[range]:
    """Of this process, of that arena."""
    lines = [line.split() for line in Path("/proc/self/maps").read_text().splitlines() if arena in line]
    bounds = [line[0].split("-") for line in lines]
    return [range(int(start, 16), int(end, 16)) for start, end in bounds]


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


# what is copied


def test_views_lie_in_the_producers_memory(producer: SharedMemoryConnector, consumer: SharedMemoryConnector) -> None:
    content = shared(producer.put(Key("scope", 0), filled(7)))
    one, other = values(consumer.read(content)), values(consumer.read(content))
    assert one.ctypes.data == other.ctypes.data
    assert any(one.ctypes.data in mapping for mapping in mappings(content.arena))


def test_arrays_begin_where_vectors_may(producer: SharedMemoryConnector, consumer: SharedMemoryConnector) -> None:
    odd = Payload(arrays={str(size): Array.of(np.full(size, 1, np.uint8)) for size in (1, 63, 64, 65, 10_001, 3)})
    got = consumer.read(producer.put(Key("scope", 0), odd))
    assert [array.numpy().ctypes.data % 64 for array in got.arrays.values()] == [0] * len(odd.arrays)


def test_small_payloads_travel_inline(producer: SharedMemoryConnector) -> None:
    assert isinstance(producer.put(Key("scope", 0), filled(1, INLINE_BELOW_BYTES)), Inline)
    assert isinstance(producer.put(Key("scope", 1), filled(1, INLINE_BELOW_BYTES + 1)), Shared)


# room


def test_what_is_larger_than_the_arena_travels_inline(producer: SharedMemoryConnector) -> None:
    assert isinstance(producer.put(Key("scope", 0), filled(1, CAPACITY_BYTES + 1)), Inline)
    with pytest.raises(PayloadTooLarge, match=f"at most {INLINE_LIMIT_BYTES}"):
        producer.put(Key("scope", 1), filled(1, INLINE_LIMIT_BYTES + 1))


def test_a_full_arena_goes_inline_until_something_is_forgotten(producer: SharedMemoryConnector) -> None:
    contents = [producer.put(Key("scope", seq), filled(seq, CAPACITY_BYTES // 4)) for seq in range(5)]
    assert [type(content) for content in contents] == [Shared] * 4 + [Inline]
    producer.cleanup("scope", before=1)
    assert isinstance(producer.put(Key("scope", 5), filled(5, CAPACITY_BYTES // 4)), Shared)


def test_a_key_that_is_put_again_gives_the_older_bytes_back(producer: SharedMemoryConnector) -> None:
    for _ in range(100):
        assert isinstance(producer.put(Key("scope", 0), filled(1, CAPACITY_BYTES // 2)), Shared)
    producer.cleanup("scope")
    assert has_room_for_everything(producer)


def test_a_slow_reader_keeps_its_bytes_and_stops_nobody(producer: SharedMemoryConnector, consumer: SharedMemoryConnector) -> None:
    slow = values(consumer.read(producer.put(Key("slow", 0), filled(200))))
    producer.cleanup("slow")
    for seq in range(300):
        quick = values(consumer.read(shared(producer.put(Key("quick", seq), filled(seq % 200)))))
        assert (quick == seq % 200).all()
        del quick
        producer.cleanup("quick")
    assert (slow == 200).all()
    assert not has_room_for_everything(producer)
    del slow
    assert has_room_for_everything(producer)


def test_whatever_is_made_of_a_view_keeps_it(producer: SharedMemoryConnector, consumer: SharedMemoryConnector) -> None:
    torch = pytest.importorskip("torch")
    array = consumer.read(producer.put(Key("scope", 0), filled(7))).arrays["bytes"]
    producer.cleanup("scope")
    kept = [np.asarray(array.data)[3:5], array.data[10:20], array.numpy().reshape(5, -1)[1].view(np.int16)]
    with pytest.warns(UserWarning, match="not writable"):
        tensor = torch.from_numpy(array.numpy())[7:9]
    del array
    for _ in range(3):
        assert not has_room_for_everything(producer)
        kept.pop()
    assert not has_room_for_everything(producer)
    assert tensor.tolist() == [7, 7]
    del tensor
    assert has_room_for_everything(producer)


def test_views_may_end_in_any_thread_and_in_the_garbage_collector(
    producer: SharedMemoryConnector, consumer: SharedMemoryConnector
) -> None:
    content = producer.put(Key("scope", 0), filled(7))

    def read_and_drop() -> None:
        for _ in range(500):
            cycle: list[object] = [kept.pop() if kept else None]
            cycle.append(cycle)
        gc.collect()

    kept = [consumer.read(content) for _ in range(MOST_MARKS)]
    threads = [threading.Thread(target=read_and_drop) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    producer.cleanup("scope")
    assert has_room_for_everything(producer)


# what is lost


def test_who_comes_too_late_reads_nothing_and_writes_nothing(
    producer: SharedMemoryConnector, consumer: SharedMemoryConnector
) -> None:
    late = [shared(producer.put(Key("late", seq), filled(seq))) for seq in range(3)]
    producer.cleanup("late")
    others = consumer.read(producer.put(Key("others", 0), filled(9, CAPACITY_BYTES)))
    for content in late:
        with pytest.raises(PayloadLost, match="forgotten"):
            consumer.read(content)
    assert (values(others) == 9).all()
    assert consumer.health() == ""


def test_another_payload_in_its_place_is_not_taken_for_it(
    producer: SharedMemoryConnector, consumer: SharedMemoryConnector
) -> None:
    old = shared(producer.put(Key("scope", 0), filled(1)))
    producer.cleanup("scope")
    new = shared(producer.put(Key("scope", 0), filled(2)))
    assert (old.at, old.outline) == (new.at, new.outline)
    with pytest.raises(PayloadLost, match="another lies in its place"):
        consumer.read(old)
    assert (values(consumer.read(new)) == 2).all()


@pytest.mark.parametrize("byte", [*range(24)])
def test_a_corrupt_entry_is_noticed(producer: SharedMemoryConnector, consumer: SharedMemoryConnector, byte: int) -> None:
    content = shared(producer.put(Key("scope", 0), filled(1)))
    at = PAGE_BYTES + content.at // PAGE_BYTES * ENTRY_BYTES + byte
    [good] = os.pread(content.fd, 1, at)
    os.pwrite(content.fd, bytes([good ^ 0x40]), at)
    with pytest.raises(PayloadLost, match="checksum"):
        consumer.read(content)
    assert "checksum" in consumer.health()
    os.pwrite(content.fd, bytes([good]), at)
    assert (values(consumer.read(content)) == 1).all()
    producer.cleanup("scope")
    assert has_room_for_everything(producer)


def test_a_reference_that_names_another_payload_is_not_served(
    producer: SharedMemoryConnector, consumer: SharedMemoryConnector
) -> None:
    content = shared(producer.put(Key("scope", 0), filled(1)))
    outline = content.outline
    wrong_key = Outline(Key("scope of another", 0), outline.arrays)
    too_long = Outline(outline.key, {"bytes": Place("uint8", (8 * PAGE_BYTES,), 0, 8 * PAGE_BYTES)})
    empty, negative = (Outline(outline.key, places) for places in ({}, {"bytes": Place("uint8", (1,), -9, 1)}))
    at, number = content.at, content.number
    wrong = [(wrong_key, at, number), (too_long, at, number), (empty, at, number), (negative, at, number)]
    wrong += [(outline, CAPACITY_BYTES, number), (outline, -PAGE_BYTES, number), (outline, at, 0), (outline, at, -1)]
    for other, place, count in wrong:
        with pytest.raises(PayloadLost):
            consumer.read(Shared(other, content.arena, content.pid, content.fd, place, count))
        assert consumer.health()


def test_a_process_that_is_not_the_producer_is_not_taken_for_it(
    producer: SharedMemoryConnector, consumer: SharedMemoryConnector, tmp_path: Path
) -> None:
    content = shared(producer.put(Key("scope", 0), filled(1)))
    other = SharedMemoryConnector(CAPACITY_BYTES)
    theirs = shared(other.put(Key("scope", 0), filled(2)))
    with (tmp_path / "file").open("w+b") as file:
        for pid, fd in ((content.pid, theirs.fd), (content.pid, file.fileno()), (content.pid, 100_000), (2**22 + 1, 3)):
            stray = Shared(content.outline, content.arena, pid, fd, content.at, content.number)
            with pytest.raises(PayloadLost, match=f"process {pid}"):
                consumer.read(stray)
            assert str(pid) in consumer.health()
    other.close()


@pytest.mark.parametrize("rounds", [200, pytest.param(5_000, marks=[pytest.mark.full, pytest.mark.timeout(300)])])
async def test_who_races_with_forgetting_sees_a_payload_whole_or_not_at_all(producer: SharedMemoryConnector, rounds: int) -> None:
    async with payload_process() as other:
        for _ in range(rounds):
            other.begin_to_hold([producer.put(Key("race", seq), filled(seq)) for seq in range(8)])
            for step in range(80):
                producer.cleanup("race", before=step // 10 + 1)
                producer.put(Key("next", step), filled(100 + step, 12 * PAGE_BYTES))
                producer.cleanup("next")
            for seq, answer in enumerate(await other.held(8)):
                assert answer == str(seq) or "forgotten" in answer
    producer.cleanup("race")
    assert has_room_for_everything(producer)


# limits


def test_so_many_processes_can_read_and_no_more(producer: SharedMemoryConnector) -> None:
    content = producer.put(Key("scope", 0), filled(1))
    readers = [SharedMemoryConnector(0) for _ in range(LANES + 1)]
    kept = [reader.read(content) for reader in readers[:LANES]]
    with pytest.raises(PayloadLost, match=f"{LANES} processes"):
        readers[LANES].read(content)
    kept.clear()
    readers[0].close()
    assert (values(readers[LANES].read(content)) == 1).all()
    for reader in readers:
        reader.close()


def test_one_process_can_read_so_often_and_no_more(producer: SharedMemoryConnector, consumer: SharedMemoryConnector) -> None:
    content = producer.put(Key("scope", 0), filled(1))
    kept = [consumer.read(content) for _ in range(MOST_MARKS)]
    with pytest.raises(PayloadLost, match=f"{MOST_MARKS} times"):
        consumer.read(content)
    producer.cleanup("scope")
    assert not has_room_for_everything(producer)
    kept.clear()
    assert has_room_for_everything(producer)


# death


async def test_a_killed_reader_gives_its_bytes_back(producer: SharedMemoryConnector) -> None:
    content = producer.put(Key("scope", 0), filled(7))
    async with payload_process() as other:
        assert await other.hold(content) == "7"
        producer.cleanup("scope")
        assert not has_room_for_everything(producer)
        await other.kill()
        assert has_room_for_everything(producer)


async def test_the_lane_of_a_killed_reader_begins_anew(producer: SharedMemoryConnector, consumer: SharedMemoryConnector) -> None:
    content = producer.put(Key("scope", 0), filled(7))
    async with payload_process() as other:
        await other.hold(content)
        await other.kill()
    consumer.read(content)
    producer.cleanup("scope")
    assert has_room_for_everything(producer)


async def test_a_reader_elsewhere_holds_until_it_drops(producer: SharedMemoryConnector) -> None:
    content = producer.put(Key("scope", 0), filled(7))
    async with payload_process() as other:
        await other.hold(content)
        producer.cleanup("scope")
        assert not has_room_for_everything(producer)
        await other.drop()
        assert has_room_for_everything(producer)


async def test_a_killed_producer_is_noticed_and_views_of_its_memory_stay(consumer: SharedMemoryConnector) -> None:
    async with payload_process() as other:
        first, second = [shared(await other.put(Key("scope", seq), fill=seq, nbytes=ARENA_BYTES // 4)) for seq in range(2)]
        view = values(consumer.read(first))
        assert consumer.health() == ""
        await other.kill()
        assert (values(consumer.read(second)) == 1).all()
        assert f"process {other.pid}" in consumer.health()
        with pytest.raises(PayloadLost, match=f"process {other.pid}"):
            consumer.read(second)
        assert (view == 0).all()
        assert mappings(first.arena)
        del view
        assert not mappings(first.arena)


async def test_a_reader_that_never_met_the_killed_producer_loses_the_payload(consumer: SharedMemoryConnector) -> None:
    async with payload_process() as other:
        content = await other.put(Key("scope", 0), fill=1, nbytes=ARENA_BYTES // 4)
        await other.kill()
    with pytest.raises(PayloadLost, match=f"process {other.pid}"):
        consumer.read(content)
    assert f"process {other.pid}" in consumer.health()


# leaks


def test_nothing_is_left_after_close() -> None:
    before, threads = descriptors(), set(threading.enumerate())
    producer, consumer = SharedMemoryConnector(CAPACITY_BYTES), SharedMemoryConnector(0)
    content = shared(producer.put(Key("scope", 0), filled(7)))
    view = values(consumer.read(content))
    producer.read(content)
    assert len(mappings(content.arena)) == 3
    producer.close()
    consumer.close()
    assert (view == 7).all()
    assert len(mappings(content.arena)) == 1
    del view
    assert not mappings("antiphon-")
    assert descriptors() == before
    assert set(threading.enumerate()) <= threads


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def flow(producer: SharedMemoryConnector, consumer: SharedMemoryConnector, messages: int) -> None:
    """Eight on their way, each with a scope of its own, of sizes that leave gaps."""
    held: list[Payload] = []
    payloads = [filled(size % 251, INLINE_BELOW_BYTES + 1 + size) for size in range(0, 20_000, 1111)]
    for seq in range(messages):
        held.append(consumer.read(producer.put(Key(f"scope {seq}", 0), payloads[seq * 7 % len(payloads)])))
        if len(held) == 8:
            held.pop(seq % 8)
        producer.cleanup(f"scope {seq}")


@pytest.mark.parametrize("messages", [100_000, pytest.param(1_000_000, marks=[pytest.mark.full, pytest.mark.timeout(300)])])
def test_many_messages_leave_no_memory_behind(
    producer: SharedMemoryConnector, consumer: SharedMemoryConnector, messages: int
) -> None:
    flow(producer, consumer, 10_000)
    before, held = resident_bytes(), descriptors()
    flow(producer, consumer, messages)
    assert resident_bytes() - before < 1 << 20
    assert descriptors() == held
    assert has_room_for_everything(producer)
