"""Seats, fences, resume tokens and expiry."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessions.manager import Fence, Kind, ResumeRefused, SeatRefused, SessionManager
from sessions.settings import SessionLimits
from sessions.states import IllegalTransition, State


class Timers:
    """A loop's call_later under the test's control."""

    def __init__(self) -> None:
        self.waiting: list[tuple[float, Callable[[], None], Handle]] = []

    def call_later(self, delay_s: float, callback: Callable[[], None]) -> "Handle":
        handle = Handle()
        self.waiting.append((delay_s, callback, handle))
        return handle

    def fire(self) -> None:
        for _, callback, handle in self.waiting:
            if not handle.cancelled:
                callback()
        self.waiting.clear()


class Handle:
    cancelled = False

    def cancel(self) -> None:
        self.cancelled = True


class World:
    def __init__(self, seats: int = 2) -> None:
        self.timers = Timers()
        self.now_us = 1_000
        self.expired: list[str] = []
        limits = SessionLimits(maximum_sessions=seats, detached_grace_s=60)
        self.manager = SessionManager(limits, 5, lambda: self.now_us, self.timers.call_later, self.expired.append)


def test_seats_are_bounded_and_freed() -> None:
    manager = World(seats=1).manager
    manager.open("a", Kind.VOICE)
    with pytest.raises(SeatRefused, match="all 1 sessions"):
        manager.open("b", Kind.VOICE)
    manager.close("a")
    manager.open("b", Kind.VOICE)
    assert [(info.session_id, info.state) for info in manager.sessions()] == [("b", State.OPENING)]
    manager.fail("b")
    assert manager.free_seats == 1


def test_an_id_in_use_is_refused() -> None:
    manager = World().manager
    manager.open("a", Kind.VOICE)
    with pytest.raises(ValueError, match="'a'"):
        manager.open("a", Kind.VOICE)


def test_fences_grow_even_when_time_goes_back() -> None:
    world = World()
    world.manager.open("a", Kind.VOICE)
    first = world.manager.attach("a")
    assert first.fence == Fence(5, 1_000)
    world.now_us = 10
    second = world.manager.resume("a", first.resume_token)
    assert second.fence == Fence(5, 1_001)
    assert not world.manager.is_current("a", first.fence)
    assert world.manager.is_current("a", second.fence)


def test_the_loser_of_two_attachments_cannot_detach() -> None:
    world = World()
    world.manager.open("a", Kind.VOICE)
    first = world.manager.attach("a")
    second = world.manager.resume("a", first.resume_token)
    assert not world.manager.detach("a", first.fence)
    assert world.manager.detach("a", second.fence)
    assert world.manager.sessions()[0].state is State.DETACHED


def test_a_token_is_valid_until_its_successor_is_used() -> None:
    world = World()
    world.manager.open("a", Kind.VOICE)
    first = world.manager.attach("a").resume_token
    lost = world.manager.resume("a", first).resume_token
    second = world.manager.resume("a", first).resume_token  # the reply was lost, the client tries again
    with pytest.raises(ResumeRefused):
        world.manager.resume("a", lost)
    third = world.manager.resume("a", second).resume_token
    with pytest.raises(ResumeRefused):
        world.manager.resume("a", first)
    world.manager.resume("a", third)


@pytest.mark.parametrize(("session_id", "token"), [("a", "wrong"), ("a", ""), ("nobody", "wrong")])
def test_wrong_tokens_and_unknown_sessions_are_refused_alike(session_id: str, token: str) -> None:
    world = World()
    world.manager.open("a", Kind.VOICE)
    world.manager.attach("a")
    with pytest.raises(ResumeRefused, match="open a new session"):
        world.manager.resume(session_id, token)


def test_a_session_that_is_opening_cannot_be_resumed() -> None:
    world = World()
    world.manager.open("a", Kind.VOICE)
    with pytest.raises(ResumeRefused):
        world.manager.resume("a", "")


def test_a_detached_session_expires_after_its_grace() -> None:
    world = World()
    world.manager.open("a", Kind.VOICE)
    attachment = world.manager.attach("a")
    world.manager.detach("a", attachment.fence)
    assert world.timers.waiting[0][0] == 60
    world.timers.fire()
    assert world.expired == ["a"]
    assert world.manager.sessions() == ()
    with pytest.raises(ResumeRefused):
        world.manager.resume("a", attachment.resume_token)


def test_coming_back_in_time_stops_the_expiry() -> None:
    world = World()
    world.manager.open("a", Kind.VOICE)
    attachment = world.manager.attach("a")
    world.manager.detach("a", attachment.fence)
    world.manager.resume("a", attachment.resume_token)
    world.timers.fire()
    assert world.expired == []
    assert world.manager.sessions()[0].state is State.ACTIVE


def test_closing_a_detached_session_stops_the_expiry() -> None:
    world = World()
    world.manager.open("a", Kind.VOICE)
    world.manager.detach("a", world.manager.attach("a").fence)
    world.manager.close("a")
    world.manager.close("a")
    world.timers.fire()
    assert world.expired == []


def test_a_second_first_attachment_is_a_bug() -> None:
    world = World()
    world.manager.open("a", Kind.VOICE)
    world.manager.attach("a")
    with pytest.raises(IllegalTransition):
        world.manager.attach("a")


@given(st.lists(st.tuples(st.sampled_from(["open", "attach", "detach", "close", "fail", "fire"]), st.sampled_from("abcd"))))
def test_no_order_of_calls_leaks_a_seat(calls: list[tuple[str, str]]) -> None:
    world = World(seats=3)
    manager = world.manager
    for call, name in calls:
        states = {info.session_id: info for info in manager.sessions()}
        info = states.get(name)
        if call == "open" and info is None and manager.free_seats:
            manager.open(name, Kind.VOICE)
        elif call == "attach" and info is not None and info.state is State.OPENING:
            manager.attach(name)
        elif call == "detach" and info is not None and info.fence is not None and info.state is State.ACTIVE:
            manager.detach(name, info.fence)
        elif call == "close":
            manager.close(name)
        elif call == "fail":
            manager.fail(name)
        elif call == "fire":
            world.timers.fire()
        assert manager.free_seats + len(manager.sessions()) == 3
    for name in "abcd":
        manager.close(name)
    assert manager.free_seats == 3
