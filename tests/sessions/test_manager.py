"""Seats, fences, resume tokens and expiry."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakes.timers import Timers
from sessions.manager import Fence, Kind, ResumeRefused, SeatRefused, SessionManager
from sessions.resume_tokens import MAX_OFFERED
from sessions.settings import SessionLimits
from sessions.states import IllegalTransition, State


class Tenant:
    """A session that notes what it is told."""

    def __init__(self, name: str, told: list[str]) -> None:
        self._name = name
        self._told = told

    def unattended(self) -> None:
        self._told.append(f"{self._name} unattended")

    def evicted(self) -> None:
        self._told.append(f"{self._name} evicted")


class World:
    def __init__(self, seats: int = 2) -> None:
        self.timers = Timers()
        self.now_us = 1_000
        self.told: list[str] = []
        limits = SessionLimits(maximum_sessions=seats, detached_grace_s=60, answer_grace_s=5)
        self.manager = SessionManager(limits, 5, lambda: self.now_us, self.timers.call_later)

    def open(self, name: str) -> None:
        self.manager.open(name, Kind.VOICE, Tenant(name, self.told))

    def detached(self, name: str) -> None:
        self.open(name)
        assert self.manager.detach(name, self.manager.attach(name).fence)


def test_seats_are_bounded_and_freed() -> None:
    world = World(seats=1)
    manager = world.manager
    world.open("a")
    with pytest.raises(SeatRefused, match="all 1 sessions"):
        world.open("b")
    manager.close("a")
    world.open("b")
    assert [(info.session_id, info.state) for info in manager.sessions()] == [("b", State.OPENING)]
    manager.fail("b")
    assert manager.free_seats == 1


def test_an_id_in_use_is_refused() -> None:
    world = World()
    world.open("a")
    with pytest.raises(ValueError, match="'a'"):
        world.open("a")


def test_fences_grow_even_when_time_goes_back() -> None:
    world = World()
    world.open("a")
    first = world.manager.attach("a")
    assert first.fence == Fence(5, 1_000)
    world.now_us = 10
    second = world.manager.resume("a", first.resume_token)
    assert second.fence == Fence(5, 1_001)
    assert not world.manager.is_current("a", first.fence)
    assert world.manager.is_current("a", second.fence)


def test_the_loser_of_two_attachments_cannot_detach() -> None:
    world = World()
    world.open("a")
    first = world.manager.attach("a")
    second = world.manager.resume("a", first.resume_token)
    assert not world.manager.detach("a", first.fence)
    assert world.manager.detach("a", second.fence)
    assert world.manager.sessions()[0].state is State.DETACHED


def test_a_token_is_valid_until_one_that_followed_it_is_used() -> None:
    world = World()
    world.open("a")
    first = world.manager.attach("a").resume_token
    second = world.manager.resume("a", first).resume_token
    retried = world.manager.resume("a", first).resume_token  # the reply was lost, the client tries again
    third = world.manager.resume("a", second).resume_token  # it was not lost
    for void in (first, retried):
        with pytest.raises(ResumeRefused):
            world.manager.resume("a", void)
    world.manager.resume("a", second)
    world.manager.resume("a", third)


def test_a_token_is_valid_until_one_that_followed_it_was_delivered() -> None:
    world = World()
    world.open("a")
    first = world.manager.attach("a").resume_token
    lost = world.manager.resume("a", first)
    second = world.manager.resume("a", first)
    world.manager.delivered(lost)  # too late, another one has taken over
    world.manager.delivered(second)
    for void in (first, lost.resume_token):
        with pytest.raises(ResumeRefused):
            world.manager.resume("a", void)
    world.manager.delivered(second)
    world.manager.resume("a", second.resume_token)
    world.manager.close("a")
    world.manager.delivered(second)


def test_of_the_tokens_that_may_be_lost_the_newest_are_kept() -> None:
    world = World()
    world.open("a")
    first = world.manager.attach("a").resume_token
    tries = [world.manager.resume("a", first).resume_token for _ in range(MAX_OFFERED + 1)]
    with pytest.raises(ResumeRefused):
        world.manager.resume("a", tries[0])
    world.manager.resume("a", tries[1])


@pytest.mark.parametrize(("session_id", "token"), [("a", "wrong"), ("a", ""), ("nobody", "wrong")])
def test_wrong_tokens_and_unknown_sessions_are_refused_alike(session_id: str, token: str) -> None:
    world = World()
    world.open("a")
    world.manager.attach("a")
    with pytest.raises(ResumeRefused, match="open a new session"):
        world.manager.resume(session_id, token)


def test_a_session_that_is_opening_cannot_be_resumed() -> None:
    world = World()
    world.open("a")
    with pytest.raises(ResumeRefused):
        world.manager.resume("a", "")


def test_a_detached_session_expires_after_its_grace() -> None:
    world = World()
    world.open("a")
    attachment = world.manager.attach("a")
    world.manager.detach("a", attachment.fence)
    assert [delay_s for delay_s, _, _ in world.timers.waiting] == [5, 60]
    world.timers.fire()
    assert world.told == ["a unattended", "a evicted"]
    assert world.manager.sessions() == ()
    with pytest.raises(ResumeRefused):
        world.manager.resume("a", attachment.resume_token)


def test_coming_back_in_time_stops_the_expiry() -> None:
    world = World()
    world.open("a")
    attachment = world.manager.attach("a")
    world.manager.detach("a", attachment.fence)
    world.manager.resume("a", attachment.resume_token)
    world.timers.fire()
    assert world.told == []
    assert world.manager.sessions()[0].state is State.ACTIVE


def test_closing_a_detached_session_stops_the_expiry() -> None:
    world = World()
    world.open("a")
    world.manager.detach("a", world.manager.attach("a").fence)
    world.manager.close("a")
    world.manager.close("a")
    world.timers.fire()
    assert world.told == []


def test_a_newcomer_to_a_full_server_takes_the_seat_of_the_session_detached_longest() -> None:
    world = World(seats=3)
    world.detached("a")
    world.open("b")
    world.detached("c")
    world.open("d")
    assert world.told == ["a evicted"]
    world.open("e")
    assert world.told == ["a evicted", "c evicted"]
    with pytest.raises(SeatRefused):
        world.open("f")
    world.timers.fire()
    assert world.told == ["a evicted", "c evicted"]


def test_who_came_back_and_was_lost_again_waits_behind_the_others() -> None:
    world = World(seats=2)
    world.open("a")
    first = world.manager.attach("a")
    world.manager.detach("a", first.fence)
    world.detached("b")
    again = world.manager.resume("a", first.resume_token)
    world.manager.detach("a", again.fence)
    world.open("c")
    assert world.told == ["b evicted"]


def test_nobody_comes_back_to_a_session_that_is_closing_and_its_seat_is_taken_until_it_is_closed() -> None:
    world = World(seats=1)
    world.open("a")
    attachment = world.manager.attach("a")
    world.manager.closing("a")
    world.manager.closing("a")
    with pytest.raises(ResumeRefused):
        world.manager.resume("a", attachment.resume_token)
    assert not world.manager.detach("a", attachment.fence)
    with pytest.raises(SeatRefused):
        world.open("b")
    world.manager.close("a")
    world.open("b")


def test_a_second_first_attachment_is_a_bug() -> None:
    world = World()
    world.open("a")
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
        if call == "open" and info is None:
            with contextlib.suppress(SeatRefused):
                world.open(name)
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
