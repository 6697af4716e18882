"""Reordering, duplicates, losses and restarts of received packets."""

from hypothesis import given
from hypothesis import strategies as st

from realtime.webrtc.packet_order import MAX_LOST, RESTART_GAP, WAIT_PACKETS, PacketOrder
from realtime.webrtc.packets import AudioPacket


def packet(sequence: int) -> AudioPacket:
    return AudioPacket(sequence & 0xFFFF, (sequence * 960) & 0xFFFFFFFF, str(sequence).encode())


def given_for(*sequences: int) -> list[bytes]:
    order = PacketOrder()
    return [payload for sequence in sequences for payload in order.add(packet(sequence))]


def names(*sequences: int) -> list[bytes]:
    return [str(sequence).encode() for sequence in sequences]


def test_in_order_at_once() -> None:
    order = PacketOrder()
    assert [order.add(packet(number)) for number in (7, 8, 9)] == [[b"7"], [b"8"], [b"9"]]


def test_numbers_wrap() -> None:
    assert given_for(65_534, 65_535, 65_536, 65_537) == names(65_534, 65_535, 65_536, 65_537)


def test_two_that_were_swapped_are_put_right() -> None:
    assert given_for(1, 3, 2, 4) == names(1, 2, 3, 4)


def test_a_missing_one_is_lost_when_enough_have_come_after_it() -> None:
    order = PacketOrder()
    order.add(packet(1))
    assert [order.add(packet(number)) for number in range(3, 3 + WAIT_PACKETS)] == [[]] * WAIT_PACKETS
    assert order.add(packet(3 + WAIT_PACKETS)) == [b"", *names(*range(3, 4 + WAIT_PACKETS))]
    assert order.add(packet(2)) == []


def test_a_duplicate_is_dropped() -> None:
    assert given_for(1, 1, 2, 2, 1) == names(1, 2)


def test_a_long_burst_is_not_concealed_whole() -> None:
    gap = RESTART_GAP // 2
    later = range(2 + gap, 2 + gap + WAIT_PACKETS + 1)
    assert given_for(1, *later) == [b"1"] + [b""] * MAX_LOST + names(*later)


def test_a_jump_is_a_new_stream() -> None:
    assert given_for(1, 2, 30_000, 30_001) == names(1, 2, 30_000, 30_001)


@given(st.lists(st.integers(0, 65_535), max_size=300))
def test_memory_is_bounded_and_nothing_is_given_twice(sequences: list[int]) -> None:
    order = PacketOrder()
    for sequence in sequences:
        given_now = order.add(packet(sequence))
        assert len(given_now) <= MAX_LOST + WAIT_PACKETS + 1
        heard = [payload for payload in given_now if payload]
        assert len(set(heard)) == len(heard)


@given(st.integers(0, 65_535), st.lists(st.booleans(), max_size=150))
def test_what_arrived_in_time_is_given_in_order(start: int, kept: list[bool]) -> None:
    arrived = [start + number for number, keep in enumerate([True, *kept]) if keep]
    heard = [payload for payload in given_for(*arrived) if payload]
    still_held = len(arrived) - len(heard)
    assert heard == names(*arrived[: len(heard)])
    assert still_held <= WAIT_PACKETS
