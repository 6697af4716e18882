"""Sessions open, grow, fork, begin anew, travel and close in any order: every byte is counted once, and none of them is changed
by another."""

import gc

import msgspec
import pytest
import torch
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule

from engines.conformance.outputs import travelled
from engines.diffusion.native.context import RollingContext
from engines.diffusion.native.key_values import KeyValues
from engines.diffusion.native.sessions import Session, Sessions
from engines.models import InvalidInput, NoRoom
from engines.parameters import Denoising
from fakes.listed import listed

LENGTH, PAGE, WINDOW = 3, 2, 5
ITEM_BYTES, TOKEN_BYTES = 4 * 4, 2 * 4
BLANK_BYTES = ITEM_BYTES + TOKEN_BYTES
LIMIT_BYTES = BLANK_BYTES + 300
"""For a life in which some of what is wanted does not fit."""


class Held(msgspec.Struct, frozen=True):
    items: RollingContext
    tokens: KeyValues


EMPTY = Held(RollingContext.empty(LENGTH, (4,)), KeyValues.empty(PAGE, WINDOW, (2,)))


def sessions(limit_bytes: int = 1 << 20) -> Sessions[Held]:
    return Sessions("held 1", EMPTY, limit_bytes)


def grown(content: Held, value: float, tokens: int = 0) -> Held:
    block = torch.full((tokens, 2), value)
    return Held(content.items.grown(torch.full((4,), value)), content.tokens.appended(block))


class Plain:
    """What a session should hold: its items and pages as values, with the number of the memory that each lies in."""

    def __init__(self, items: list[tuple[int, float]], pages: list[tuple[int, list[float]]], jobs: int) -> None:
        self.items, self.pages, self.jobs = items, pages, jobs

    def values(self) -> tuple[list[float], list[float], int]:
        tokens = [token for _, page in self.pages for token in page]
        return [value for _, value in self.items], tokens[-WINDOW:], self.jobs


class Life(RuleBasedStateMachine):
    living = Bundle("living")

    def __init__(self) -> None:
        super().__init__()
        self.sessions = sessions(LIMIT_BYTES)
        self.plain: dict[Session[Held], Plain] = {}
        self.memories = 0

    @rule(target=living)
    def open(self) -> Session[Held]:
        return self.known(self.sessions.open(Denoising()), Plain([], [], 0))

    @rule(target=living, one=living)
    def fork(self, one: Session[Held]) -> Session[Held]:
        there = self.plain[one]
        return self.known(self.sessions.fork(one, Denoising(seed=1)), Plain(list(there.items), list(there.pages), there.jobs))

    @rule(one=living, value=st.floats(-9, 9, width=16), tokens=st.integers(0, 4))
    def append(self, one: Session[Held], value: float, tokens: int) -> None:
        wanted = self.after(self.plain[one], value, tokens)
        needed = self.nbytes({**self.plain, one: wanted})
        if needed > LIMIT_BYTES and needed > self.nbytes(self.plain):
            with pytest.raises(NoRoom):
                self.sessions.keep(one, grown(one.content, value, tokens))
        else:
            self.sessions.keep(one, grown(one.content, value, tokens))
            self.plain[one] = wanted

    @rule(one=living)
    def reset(self, one: Session[Held]) -> None:
        self.sessions.reset(one)
        self.plain[one] = Plain([], [], 0)

    @rule(one=consumes(living))
    def close(self, one: Session[Held]) -> None:
        self.sessions.close(one)
        del self.plain[one]

    @invariant()
    def every_byte_is_counted_once(self) -> None:
        assert self.sessions.nbytes == self.nbytes(self.plain)
        assert len(self.sessions) == len(self.plain)

    @invariant()
    def nobody_changes_anybody_else(self) -> None:
        for session, plain in self.plain.items():
            content = session.content
            read = listed(content.items.entries()[:, 0]), listed(content.tokens.entries()[:, 0]), session.jobs
            assert read == plain.values()

    def known(self, session: Session[Held], plain: Plain) -> Session[Held]:
        self.plain[session] = plain
        return session

    def after(self, there: Plain, value: float, tokens: int) -> Plain:
        pages, fresh = list(there.pages), [value] * tokens
        if fresh and pages and len(pages[-1][1]) < PAGE:
            fresh = pages.pop()[1] + fresh
        pages += [(self.memory(), fresh[at : at + PAGE]) for at in range(0, len(fresh), PAGE)]
        while pages and sum(len(page) for _, page in pages[1:]) >= WINDOW:
            pages.pop(0)
        return Plain([*there.items, (self.memory(), value)][-LENGTH:], pages, there.jobs + 1)

    def memory(self) -> int:
        self.memories += 1
        return self.memories

    def nbytes(self, plain: dict[Session[Held], Plain]) -> int:
        items = {memory: ITEM_BYTES for each in plain.values() for memory, _ in each.items}
        pages = {memory: TOKEN_BYTES * len(page) for each in plain.values() for memory, page in each.pages}
        return BLANK_BYTES + sum(items.values()) + sum(pages.values())


TestLife = Life.TestCase
TestLife.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)


def test_what_does_not_fit_is_refused_with_the_numbers_and_changes_nothing() -> None:
    kept = sessions(limit_bytes=BLANK_BYTES + 2 * ITEM_BYTES)
    one, other = kept.open(Denoising()), kept.open(Denoising())
    kept.keep(one, grown(one.content, 1))
    kept.keep(other, grown(other.content, 2))
    with pytest.raises(NoRoom, match=r"^state_mb: expected at most 56 bytes .* got 72 with the 16 that this session needs more$"):
        kept.keep(one, grown(one.content, 3))
    assert (one.jobs, len(one.content.items.items), kept.nbytes) == (1, 1, 56)
    kept.fork(one, Denoising())  # which needs no more memory
    kept.close(other)
    kept.keep(one, grown(one.content, 3))
    assert kept.nbytes == 56


def test_a_snapshot_holds_all_and_needs_room_too() -> None:
    kept = sessions()
    one = kept.open(Denoising())
    for value in range(5):
        kept.keep(one, grown(one.content, value, tokens=2))
    snapshot = travelled(kept.snapshot(one))
    again = sessions().restore(Denoising(), snapshot)
    assert torch.equal(again.content.items.entries(), one.content.items.entries())
    assert torch.equal(again.content.tokens.entries(), one.content.tokens.entries())
    assert (again.jobs, again.content.tokens.seen) == (5, 10)
    with pytest.raises(NoRoom):
        sessions(limit_bytes=BLANK_BYTES + 10).restore(Denoising(), snapshot)


def test_a_snapshot_of_another_kind_is_refused() -> None:
    kept = sessions()
    foreign = Sessions("held 2", EMPTY, 1 << 20)
    with pytest.raises(InvalidInput, match="expected 'held 2', got 'held 1'"):
        foreign.restore(Denoising(), kept.snapshot(kept.open(Denoising())))


def test_a_thousand_sessions_and_forks_leave_nothing() -> None:
    kept = sessions()

    def live(value: int) -> None:
        one = kept.open(Denoising())
        kept.keep(one, grown(one.content, value, tokens=3))
        branch = kept.fork(one, Denoising(seed=value))
        kept.keep(branch, grown(branch.content, value, tokens=3))
        kept.close(one)
        kept.close(branch)

    live(0)
    before = _tensors()
    for value in range(1_000):
        live(value)
    assert (kept.nbytes, len(kept), _tensors()) == (BLANK_BYTES, 0, before)


def test_what_is_closed_stays_closed_and_is_counted_no_more() -> None:
    kept = sessions()
    one = kept.open(Denoising())
    kept.keep(one, grown(one.content, 1))
    kept.close(one)
    for act in (
        lambda: kept.close(one),
        lambda: kept.reset(one),
        lambda: kept.fork(one, Denoising()),
        lambda: kept.check(one, one.content),
    ):
        with pytest.raises(KeyError, match="expected an open one"):
            act()
    assert (kept.nbytes, len(kept)) == (BLANK_BYTES, 0)


def _tensors() -> int:
    gc.collect()
    return sum(type(each) is torch.Tensor for each in gc.get_objects())
