"""Whose turn it is when a slot becomes free."""

from hypothesis import given
from hypothesis import strategies as st

from engines.messages.to_worker import ServiceClass
from engines.worker.waiting import WaitingLine

CONTROL, INTERACTIVE, BATCH = ServiceClass.CONTROL, ServiceClass.INTERACTIVE, ServiceClass.BATCH

Entry = tuple[int, str, ServiceClass]


def emptied(line: WaitingLine[Entry]) -> list[Entry]:
    order: list[Entry] = []
    while (one := line.next()) is not None:
        order.append(one)
    return order


def filled(entries: list[Entry]) -> WaitingLine[Entry]:
    line: WaitingLine[Entry] = WaitingLine(4)
    for entry in entries:
        line.join(entry, entry[1], entry[2])
    return line


def test_classes_in_order_then_by_arrival() -> None:
    entries = [(0, "a", BATCH), (1, "a", INTERACTIVE), (2, "a", CONTROL), (3, "a", INTERACTIVE)]
    assert [number for number, *_ in emptied(filled(entries))] == [2, 1, 3, 0]


def test_gateways_take_turns_whatever_each_has_waiting() -> None:
    entries = [(number, "greedy", INTERACTIVE) for number in range(4)] + [(4, "modest", INTERACTIVE), (5, "modest", INTERACTIVE)]
    assert [number for number, *_ in emptied(filled(entries))] == [0, 4, 1, 5, 2, 3]


def test_who_leaves_is_not_called() -> None:
    entries = [(0, "a", BATCH), (1, "b", BATCH)]
    line = filled(entries)
    line.leave(entries[0], "a", BATCH)
    assert len(line) == 1
    assert emptied(line) == [entries[1]]
    assert len(line) == 0


def test_it_has_four_places_a_slot_and_sixteen_at_least() -> None:
    assert (WaitingLine[int](1).places, WaitingLine[int](4).places, WaitingLine[int](5).places) == (16, 16, 20)


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(ServiceClass)), max_size=40))
def test_everybody_is_called_once_and_no_gateway_twice_while_another_waits(kinds: list[tuple[str, ServiceClass]]) -> None:
    entries = [(number, gateway, service_class) for number, (gateway, service_class) in enumerate(kinds)]
    order = emptied(filled(entries))
    assert sorted(order) == entries
    for service_class in ServiceClass:
        same_class = [entry for entry in order if entry[2] is service_class]
        assert all(entry[2] is not service_class for entry in order[order.index(same_class[-1]) + 1 :]) if same_class else True
        for gateway in "abc":
            numbers = [entry[0] for entry in same_class if entry[1] == gateway]
            assert numbers == sorted(numbers)
        for position, (_, gateway, _) in enumerate(same_class[1:], start=1):
            if gateway == same_class[position - 1][1]:
                assert all(later[1] == gateway for later in same_class[position:])
