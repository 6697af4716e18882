"""Several sources of one stage: bridged each by itself, joined, counted each by itself."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.messages.to_worker import PUSH_WINDOW
from engines.models import InvalidInput
from engines.payloads import Payload
from engines.worker.inbox import Inbox
from engines.worker.ways_in import WaysIn
from fakes.joins import Marked, Pairs

A, B = "a", "b"


class Fed:
    def __init__(self, ways_in: WaysIn) -> None:
        self.taken: list[str] = []
        self.inbox = Inbox("stage", ways_in, self.taken.append)

    def push(self, source: str, text: str = "", *, final: bool = False) -> None:
        self.inbox.expect(source, final=final)
        self.inbox.feed(source, Payload(text), final=final, now=1.0)

    def take_all(self) -> list[str]:
        texts: list[str] = []
        while self.inbox.inputs:
            texts.append(self.inbox.take().payload.text)
        return texts


def mixed() -> Fed:
    return Fed(WaysIn({A: Marked(None), B: Marked(None)}))


def paired() -> Fed:
    return Fed(WaysIn({A: Marked(None), B: Marked(None)}, Pairs(None, (A, B))))


def test_without_a_join_inputs_come_as_they_arrive_and_end_with_the_last_source() -> None:
    fed = mixed()
    fed.push(A, "1")
    fed.push(B, "2", final=True)
    fed.push(A, "3")
    assert fed.inbox.ended_at is None
    fed.push(A, final=True)
    assert fed.inbox.ended_at == 1.0
    assert fed.take_all() == ["<1>", "<2>", ".", "<3>", "."]
    assert fed.taken == [A, B, A, A]


def test_a_push_is_taken_when_all_that_became_of_it_is_taken_or_at_once_when_nothing_did() -> None:
    fed = mixed()
    fed.push(A, "swallow")
    fed.push(A)
    assert fed.taken == [A, A]
    fed.push(B, "last", final=True)
    assert fed.inbox.take().payload.text == "<last>"
    assert fed.taken == [A, A]
    fed.inbox.take()
    assert fed.taken == [A, A, B]


def test_a_join_makes_inputs_of_what_several_sources_sent() -> None:
    fed = paired()
    fed.push(A, "1")
    fed.push(A, "2")
    assert fed.taken == [A, A]
    fed.push(B, "x")
    assert fed.take_all() == ["<1><x>"]
    assert fed.taken == [A, A, B]
    fed.push(B, final=True)
    fed.push(A, "3", final=True)
    assert fed.take_all() == ["<2>.", "<3>", "."]
    assert fed.inbox.ended_at is not None


def test_each_source_has_a_window_of_its_own() -> None:
    fed = mixed()
    for _ in range(PUSH_WINDOW):
        fed.push(A, "x")
    for _ in range(PUSH_WINDOW):
        fed.push(B, "x")
    for source in (A, B):
        with pytest.raises(InvalidInput, match="at most 32 pushes not yet taken"):
            fed.inbox.expect(source, final=False)
    fed.inbox.take()
    fed.push(A, "x")


def test_a_stranger_and_what_follows_the_final_push_of_a_source_are_refused() -> None:
    fed = mixed()
    with pytest.raises(InvalidInput, match="expected 'a', 'b', got 'c'"):
        fed.inbox.expect("c", final=False)
    fed.push(A, final=True)
    with pytest.raises(InvalidInput, match="after the final one"):
        fed.inbox.expect(A, final=False)
    fed.push(B, "goes on")


TEXTS = st.sampled_from(["1", "2", "swallow", ""])


@given(st.lists(st.tuples(st.sampled_from([A, B]), TEXTS), max_size=PUSH_WINDOW), st.booleans())
def test_every_push_is_taken_exactly_once(pushes: list[tuple[str, str]], joined: bool) -> None:
    fed = paired() if joined else mixed()
    for source, text in pushes:
        fed.push(source, text)
    for source in (A, B):
        fed.take_all()
        fed.push(source, final=True)
    texts = fed.take_all()
    expected = Counter(source for source, _ in pushes)
    assert Counter(fed.taken) == expected + Counter({A: 1, B: 1})
    assert fed.inbox.ended_at is not None
    assert texts[-1].endswith(".")
