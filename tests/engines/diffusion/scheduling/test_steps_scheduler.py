"""Who shares the next call when it is decided anew before each."""

import pytest

from engines.diffusion.scheduling import Member
from engines.diffusion.scheduling.costs import TRUSTED
from engines.diffusion.scheduling.steps import Steps
from fakes.simulated_engine import SimulatedEngine, Work


def member(
    deadline: float | None, calls: int = 4, *, key: str = "a", rows: int = 1, service_class: str = "interactive", at: float = 0.0
) -> Member:
    return Member(service_class, at, deadline, key, rows, calls)


def there(*members: Member, limit: int = 8) -> Steps:
    """After calls of `a` and `b` have shown that one of n rows takes 4 + 0.5·n ms."""
    scheduler = Steps(limit)
    for key in ("a", "b"):
        for rows in (1, limit):
            first = member(None, 1, key=key, rows=rows)
            scheduler.enter(first, 0.0)
            scheduler.ran(scheduler.choose(0.0).run, 0.004 + 0.0005 * rows)
            scheduler.leave(first)
    for one in members:
        assert scheduler.enter(one, 0.0) is None
    return scheduler


def test_nobody_there_is_nothing_to_do() -> None:
    assert Steps(8).choose(1.0) == ((), (), None)


def test_who_has_least_slack_decides_the_key_and_all_of_it_join() -> None:
    calm, urgent, other = member(2.0, key="b"), member(0.5), member(3.0)
    assert there(calm, urgent, other).choose(0.0).run == (urgent, other)


def test_slack_is_what_is_left_after_the_calls_to_come() -> None:
    early_and_short, late_and_long = member(0.9, calls=10), member(1.0, calls=100, key="b")
    assert there(early_and_short, late_and_long).choose(0.0).run == (late_and_long,)


def test_members_at_different_steps_share_a_call_and_a_newcomer_joins_between_two() -> None:
    works = [Work(0.0, "batch", 10), Work(0.0061, "batch", 4)]
    record = SimulatedEngine(Steps(8)).run(works)
    assert [call.rows for call in record.calls] == [1, 1, 2, 2, 2, 2, 1, 1, 1, 1]


def test_not_more_rows_than_the_limit_and_a_smaller_one_fills_the_gap() -> None:
    two, three, one = member(0.5, rows=2), member(0.6, rows=3), member(0.7, rows=1)
    assert there(two, three, one, limit=4).choose(0.0).run == (two, one)


def test_of_more_than_fit_the_most_urgent_go_first() -> None:
    members = [member(9.0 - n) for n in range(8)]
    assert there(*members, limit=3).choose(0.0).run == (members[7], members[6], members[5])


def test_one_with_more_rows_than_the_limit_runs_alone() -> None:
    large, small = member(0.5, rows=9), member(0.6)
    assert there(large, small).choose(0.0).run == (large,)


def test_nobody_joins_who_would_make_the_first_late() -> None:
    tight = member(0.0196, calls=4)  # 4 × 4.5 ms alone, and 1.6 ms to spare: three more rows
    others = [member(9.0) for _ in range(7)]
    assert len(there(tight, *others).choose(0.0).run) == 4
    assert len(there(member(0.0181, calls=4), *others).choose(0.0).run) == 1
    assert len(there(member(0.1, calls=4), *others).choose(0.0).run) == 8


def test_where_company_does_not_pay_everybody_runs_alone() -> None:
    scheduler = Steps(8)
    pair = member(None, 100), member(None, 100)
    for one in pair:
        scheduler.enter(one, 0.0)
    sizes: list[int] = []
    for turn in range(60):
        run = scheduler.choose(float(turn)).run
        sizes.append(len(run))
        scheduler.ran(run, 0.010 if len(run) == 1 else 0.030)
        if turn == 1:
            scheduler.leave(pair[0])
        if turn == 2:
            scheduler.enter(pair[0], 2.0)
    assert sizes[:2] == [2, 2]
    assert sizes[3:] == [1] * 57


def test_of_those_without_a_deadline_the_oldest_goes_on_to_its_end() -> None:
    works = [Work(0.001 * n, "batch", 20, keys=(n,)) for n in range(5)]
    record = SimulatedEngine(Steps(8)).run(works)
    assert [end.work for end in record.ends] == works
    assert [call.key for call in record.calls] == sorted(n for n in range(5) for _ in range(20))


def picture(at: float, size: str, steps: int = 20) -> Work:
    return Work(at, "batch", 2 + steps, keys=("prompt", "negative prompt", size), prepares=2)


def test_those_without_a_deadline_share_steps_as_soon_as_they_have_prepared_themselves() -> None:
    record = SimulatedEngine(Steps(8)).run([picture(0.010 * n, "a") for n in range(3)])
    assert sum(call.key == "a" for call in record.calls) <= 26


def test_but_no_newcomer_prepares_itself_for_calls_in_which_there_is_no_room() -> None:
    first, second, late = picture(0.0, "a"), picture(0.0, "a"), picture(0.030, "a")
    record = SimulatedEngine(Steps(2)).run([first, second, late])
    begun = next(call.at for call in record.calls if late in call.works)
    assert begun >= max(end.at for end in record.ends if end.work is not late)


def test_what_shares_steps_with_one_before_another_size_does_not_wait_for_that() -> None:
    works = [picture(0.0, "a"), picture(0.010, "B"), picture(0.020, "a"), picture(0.030, "a")]
    record = SimulatedEngine(Steps(8)).run(works)
    assert [end.work for end in record.ends] == [works[0], works[2], works[3], works[1]]
    assert sum(call.key == "a" for call in record.calls) <= 28


def test_and_a_large_one_waits_no_longer_for_small_ones_than_it_takes_itself() -> None:
    large = Work(0.0, "batch", 200, keys=("large",))
    stream = [Work(0.018 * n, "batch", 4, keys=("small",)) for n in range(400)]
    record = SimulatedEngine(Steps(1)).run([large, *stream])
    end = next(end.at for end in record.ends if end.work is large)
    assert end < 3 * 200 * 0.0045


def test_one_without_a_deadline_goes_on_through_any_stream_of_those_with() -> None:
    stream = [Work(0.0045 * n, "batch", 1, deadline_s=0.05, keys=("stream",)) for n in range(20_000)]
    patient = Work(0.0, "batch", 4, keys=("patient",))
    record = SimulatedEngine(Steps(8)).run([*stream, patient])
    end = next(end for end in record.ends if end.work is patient)
    assert end.how == "done"
    assert end.at < 45


def test_but_it_has_one_call_in_its_patience_then_and_not_all_of_them() -> None:
    stream = [Work(0.0045 * n, "interactive", 1, deadline_s=0.05, keys=("stream",)) for n in range(4000)]
    patient = Work(0.0, "interactive", 10_000, keys=("patient",), gives_up_at=17.0)
    record = SimulatedEngine(Steps(8, {"interactive": 1.0}), limit_calls=4000).run([*stream, patient])
    served = [call.at for call in record.calls if patient in call.works and call.at > 2.0]
    assert 10 <= len(served) <= 30


def test_a_deadline_that_is_near_goes_before_a_job_that_has_none_and_is_old() -> None:
    old = Member("interactive", 0.0, None, "a", 1, 100)
    scheduler = there(old)
    for now in (0.5, 0.9, 1.3):
        assert scheduler.choose(now).run == (old,)
        scheduler.ran((old,), 0.0045)
    near = member(1.390, key="b")
    assert scheduler.enter(near, 1.31) is None
    assert scheduler.choose(1.31).run == (near,)


def test_one_who_gives_up_is_not_in_the_next_call() -> None:
    going, staying = Work(0.0, "batch", 50, gives_up_at=0.02), Work(0.0, "batch", 50)
    record = SimulatedEngine(Steps(8)).run([going, staying])
    assert record.how(going) == "gave up"
    assert all(going not in call.works for call in record.calls if call.at >= 0.02)
    assert record.how(staying) == "done"


def test_leaving_twice_or_without_having_been_there_is_nothing() -> None:
    scheduler, one = Steps(8), member(None)
    scheduler.leave(one)
    scheduler.enter(one, 0.0)
    scheduler.leave(one)
    scheduler.leave(one)
    assert scheduler.choose(0.0).run == ()


def test_one_that_left_during_its_call_still_teaches_what_the_call_cost() -> None:
    scheduler = Steps(8)
    for one in (member(None) for _ in range(TRUSTED)):
        scheduler.enter(one, 0.0)
        run = scheduler.choose(0.0).run
        scheduler.leave(one)
        scheduler.ran(run, 0.5)
    assert scheduler.choose(1.0).run == ()
    assert scheduler.enter(member(1.4, calls=1, at=1.0), 1.0) is not None


def test_a_limit_of_no_rows_is_refused() -> None:
    with pytest.raises(ValueError, match="limit: expected at least 1 row, got 0"):
        Steps(0)
