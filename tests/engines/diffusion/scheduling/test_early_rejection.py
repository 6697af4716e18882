"""What cannot be done in time is said at once, with the numbers."""

import itertools
import random

import pytest

from engines.diffusion.scheduling import Member, Scheduler
from engines.diffusion.scheduling.costs import TRUSTED
from engines.diffusion.scheduling.steps import Steps
from engines.diffusion.scheduling.waves import Waves
from fakes.simulated_engine import SimulatedEngine, Work, step_s


def fresh(kind: str) -> Scheduler:
    scheduler = Steps(8) if kind == "steps" else Waves(8, window_s=0.0, stable_s=0.0)
    first = Member("batch", 0.0, None, "shape", 1, TRUSTED)
    assert scheduler.enter(first, 0.0) is None
    for _ in range(TRUSTED):
        scheduler.ran(scheduler.choose(0.0).run, 0.010)
    scheduler.leave(first)
    return scheduler


def due(deadline: float, calls: int, key: str = "shape") -> Member:
    return Member("control", 1.0, deadline, key, 1, calls)


@pytest.fixture(params=["steps", "waves"])
def scheduler(request: pytest.FixtureRequest) -> Scheduler:
    return fresh(request.param)


def test_what_would_be_late_even_alone_is_not_taken(scheduler: Scheduler) -> None:
    late = due(1.050, calls=10)
    assert scheduler.enter(late, 1.0) == (
        late,
        "cannot be done in time: 10 calls to come take 10.0 ms each, 100.0 ms even alone, 50.0 ms are left",
    )
    assert scheduler.choose(1.0).run == ()
    assert scheduler.enter(due(1.100, calls=10), 1.0) is None


def test_what_has_become_late_is_shed_at_the_next_boundary(scheduler: Scheduler) -> None:
    member = due(1.050, calls=4)
    assert scheduler.enter(member, 1.0) is None
    decision = scheduler.choose(1.030)
    assert decision.run == ()
    [(out, why)] = decision.shed
    assert out is member
    assert why == "cannot be done in time: 4 calls to come take 10.0 ms each, 40.0 ms even alone, 20.0 ms are left"
    assert scheduler.choose(1.031).shed == ()


def test_a_deadline_that_has_passed_needs_no_cost(scheduler: Scheduler) -> None:
    member = due(1.050, calls=1, key="never ran")
    assert scheduler.enter(member, 1.0) is None
    [(_, why)] = scheduler.choose(1.0532).shed
    assert why == "the deadline passed 3.2 ms ago with 1 call to come"


def test_a_shape_that_never_ran_is_not_rejected_for_what_it_may_cost(scheduler: Scheduler) -> None:
    assert scheduler.enter(due(1.001, calls=1000, key="never ran"), 1.0) is None


def test_what_has_no_deadline_is_never_shed(scheduler: Scheduler) -> None:
    member = Member("control", 1.0, None, "shape", 1, 1000)
    assert scheduler.enter(member, 1.0) is None
    decision = scheduler.choose(1e6)
    assert decision.shed == ()
    assert decision.run == (member,)


def test_more_than_the_engine_can_do_by_then_is_not_taken(scheduler: Scheduler) -> None:
    taken = 0
    why = ""
    while not why:
        shed = scheduler.enter(due(1.100, calls=10), 1.0)
        taken, why = (taken + 1, "") if shed is None else (taken, shed.why)
    assert 5 <= taken < 100
    assert why.startswith("overload: what is due before it in class control and itself need ")
    assert why.endswith(" ms, 100.0 of the 100.0 ms left are free for them")
    other_class = Member("interactive", 1.0, 1.100, "shape", 1, 9)
    assert scheduler.enter(other_class, 1.0) is None


def test_one_that_comes_back_is_not_told_that_there_is_too_much(scheduler: Scheduler) -> None:
    returning = due(1.100, calls=10)
    assert scheduler.enter(returning, 1.0) is None
    scheduler.ran(scheduler.choose(1.0).run, 0.009)
    scheduler.leave(returning)
    while scheduler.enter(due(1.099, calls=5), 1.0) is None:
        pass
    assert scheduler.enter(returning, 1.0) is None


def test_a_cost_that_was_measured_too_high_does_not_reject_for_ever(scheduler: Scheduler) -> None:
    refused = 0
    while scheduler.enter(due(1.010, calls=2), 1.0) is not None:
        refused += 1
        assert refused < 100
    assert refused > 0


def overload(seconds: float) -> list[Work]:
    """1,500 steps a second for an engine that does 1,000."""
    return [Work(n / 150, "interactive", 10, deadline_s=0.2) for n in range(int(150 * seconds))]


def test_in_an_overload_that_goes_on_most_of_the_engine_goes_into_what_is_done_in_time() -> None:
    record = SimulatedEngine(Steps(8)).run(overload(30.0))
    in_time = sum(end.in_time for end in record.ends)
    assert in_time * 10 / sum(call.rows for call in record.calls) > 0.85
    early = sum(end.how == "rejected" for end in record.ends)
    assert early > 0.6 * (len(record.ends) - in_time)


def test_after_an_overload_everything_is_taken_again() -> None:
    calm = [Work(40.0 + n / 50, "interactive", 10, deadline_s=0.2) for n in range(2000)]
    record = SimulatedEngine(Steps(8), step_s).run([*overload(5.0), *calm])
    last = [end for end in record.ends if end.work in calm[1000:]]
    assert sum(not end.in_time for end in last) <= 10


def burst(at: float, jobs: int) -> list[Work]:
    return [Work(at, "interactive", 10, deadline_s=0.2) for _ in range(jobs)]


def test_and_as_much_at_once_as_before() -> None:
    calm = [Work(5.0 + n / 50, "interactive", 10, deadline_s=0.2) for n in range(2750)]
    late = burst(61.0, 12)
    record = SimulatedEngine(Steps(8)).run([*overload(5.0), *calm, *late])
    assert all(end.in_time for end in record.ends if end.work in late)


def test_once_nothing_is_left_to_do_the_overload_is_over() -> None:
    late = burst(6.0, 12)
    record = SimulatedEngine(Steps(8)).run([*overload(5.0), *late])
    assert all(end.in_time for end in record.ends if end.work in late)


def test_also_when_the_last_of_it_were_shed(scheduler: Scheduler) -> None:
    first = [Member("batch", 1.0, 2.0, "shape", 1, 40) for _ in range(8)]
    assert [scheduler.enter(member, 1.0) for member in first] == [None] * 8
    for turn in range(20):
        scheduler.ran(scheduler.choose(1.0 + 0.010 * turn).run, 0.010)
    assert len(scheduler.choose(2.5).shed) == 8
    again = [Member("batch", 3.0, 3.450, "shape", 1, 40) for _ in range(8)]
    assert [scheduler.enter(member, 3.0) for member in again] == [None] * 8


def test_slow_calls_narrow_nothing_when_little_was_promised() -> None:
    calls = itertools.count()
    lone = [Work(0.1 * n, "interactive", 4, deadline_s=0.030) for n in range(200)]
    late = burst(21.0, 12)
    engine = SimulatedEngine(Steps(8), lambda key, rows: 0.025 if next(calls) % 5 == 4 and rows == 1 else step_s(key, rows))
    record = engine.run([*lone, *late])
    assert sum(not end.in_time for end in record.ends if end.work in lone) > 50
    assert all(end.in_time for end in record.ends if end.work in late)


def test_a_class_well_within_its_share_is_not_told_that_there_is_too_much() -> None:
    draw = random.Random(3)
    control = [Work(draw.uniform(0, 40), "control", 4, deadline_s=0.050) for _ in range(40 * 70)]
    others = [Work(draw.uniform(0, 40), "batch", 12, deadline_s=0.500) for _ in range(40 * 60)]
    slow = SimulatedEngine(Steps(8), lambda key, rows: step_s(key, rows) * (draw.uniform(2, 6) if draw.random() < 0.05 else 1))
    record = slow.run([*control, *others])
    told = [end for end in record.ends if end.how == "rejected" and end.why.startswith("overload")]
    assert sum(end.work.service_class == "control" for end in told) < 0.02 * len(control)
    assert sum(end.work.service_class == "batch" for end in told) > 0.1 * len(others)


def test_and_one_that_asks_for_little_again_is_not_held_to_what_was_too_much() -> None:
    others = [Work(5.0 + n / 50, "batch", 10, deadline_s=0.5) for n in range(200)]
    late = burst(9.1, 12)
    record = SimulatedEngine(Steps(8)).run([*overload(5.0), *others, *late])
    assert all(end.in_time for end in record.ends if end.work in late)
