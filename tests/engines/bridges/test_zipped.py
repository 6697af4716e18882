"""Joining legs that run in step."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.bridges.held import MOST_HELD_BYTES
from engines.bridges.zipped import MOST_APART, Zipped
from engines.parameters import Activity
from engines.payloads import Array, Payload
from engines.pipeline import BrokenStream

SOURCES = ("words", "sounds", "lips")


def zipped(*sources: str) -> Zipped:
    return Zipped(Activity(), sources)


def of(source: str, number: int) -> Payload:
    return Payload(arrays={source: Array.of(np.array([number]))}, attributes={f"{source}_at": number, "step": number})


def numbers(merged: Payload) -> dict[str, int]:
    return {name: int(array.numpy()[0]) for name, array in merged.arrays.items()}


def run(join: Zipped, events: list[tuple[str, int | None]]) -> list[Payload]:
    return [
        merged
        for source, number in events
        for merged in (join.finish(source) if number is None else join.feed(source, of(source, number)))
    ]


@st.composite
def interleavings(draw: st.DrawFn, sources: tuple[str, ...] = SOURCES) -> list[tuple[str, int | None]]:
    """Payloads by number and ends (None) of legs of equal length, each leg in order."""
    steps = draw(st.integers(0, 8))
    order = draw(st.permutations([source for source in sources for _ in range(steps + 1)]))
    seen = dict.fromkeys(sources, -1)
    events: list[tuple[str, int | None]] = []
    for source in order:
        seen[source] += 1
        events.append((source, seen[source] if seen[source] < steps else None))
    return events


@given(interleavings())
def test_however_legs_interleave_their_payloads_meet_by_number(events: list[tuple[str, int | None]]):
    merged = run(zipped(*SOURCES), events)
    steps = sum(number is not None for _, number in events) // len(SOURCES)
    assert [numbers(payload) for payload in merged] == [dict.fromkeys(SOURCES, number) for number in range(steps)]
    assert [payload.attributes["step"] for payload in merged] == list(range(steps))


@given(interleavings(), st.data())
def test_a_leg_that_ends_early_is_a_fault_and_never_a_wait(events: list[tuple[str, int | None]], data: st.DataObject):
    pushed = [event for event in events if event[1] is not None]
    if pushed:
        events.remove(data.draw(st.sampled_from(pushed)))
        with pytest.raises(BrokenStream, match=r"expected equally many payloads of every leg, got \d of '\w+' and the end of"):
            run(zipped(*SOURCES), [(source, None if number is None else 0) for source, number in events])


def test_a_payload_too_many_is_told_at_once():
    join = zipped("words", "sounds")
    join.finish("words")
    with pytest.raises(BrokenStream, match="got 1 of 'sounds' and the end of 'words' after 0"):
        join.feed("sounds", of("sounds", 0))


def test_what_has_all_its_parts_does_not_wait():
    join = zipped("words", "sounds")
    assert join.feed("words", of("words", 0)) == []
    assert numbers(join.feed("sounds", of("sounds", 0))[0]) == {"words": 0, "sounds": 0}


def test_one_leg_alone_goes_through():
    assert zipped("words").feed("words", of("words", 3)) == [of("words", 3)]


def test_a_payload_may_be_empty_and_still_counts():
    join = zipped("words", "sounds")
    join.feed("words", Payload())
    assert join.feed("sounds", Payload(text="boom")) == [Payload(text="boom")]


def test_legs_that_drift_apart_are_refused():
    join = zipped("words", "sounds")
    for number in range(MOST_APART):
        join.feed("words", of("words", number))
    with pytest.raises(BrokenStream, match=rf"at most {MOST_APART} payloads apart, got 65 of 'words' and 0 of 'sounds'"):
        join.feed("words", of("words", MOST_APART))


def test_legs_that_hold_too_much_are_refused():
    join, half = zipped("words", "sounds"), Payload(arrays={"words": Array.of(np.zeros(MOST_HELD_BYTES // 2, np.uint8))})
    join.feed("words", half)
    join.feed("words", half)
    with pytest.raises(BrokenStream, match=f"expected at most {MOST_HELD_BYTES} bytes"):
        join.feed("words", half)


@pytest.mark.parametrize(
    ("left", "right", "what"),
    [
        (Payload(text="a"), Payload(text="b"), "text"),
        (of("words", 1), Payload(arrays=of("words", 1).arrays), "array 'words'"),
        (Payload(attributes={"clause": 1}), Payload(attributes={"clause": 2}), "attribute 'clause'"),
    ],
)
def test_a_name_from_two_legs_is_refused(left: Payload, right: Payload, what: str):
    join = zipped("words", "sounds")
    join.feed("words", left)
    with pytest.raises(BrokenStream, match=f"expected {what} from one leg, got it from 'words' and 'sounds'"):
        join.feed("sounds", right)


def test_what_waits_is_a_copy():
    """What comes may be a view of memory that its producer wants to use again."""
    join, lent = zipped("words", "sounds"), np.array([7])
    join.feed("words", Payload(arrays={"words": Array.of(lent)}))
    lent[:] = -1
    assert numbers(join.feed("sounds", of("sounds", 0))[0]) == {"words": 7, "sounds": 0}
