"""What both schedulers promise, for whatever comes."""

import random
from collections import Counter
from collections.abc import Hashable
from math import inf

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engines.diffusion.scheduling import Member, Scheduler
from engines.diffusion.scheduling.steps import Steps
from engines.diffusion.scheduling.waves import Waves
from fakes.simulated_engine import SimulatedEngine, Work

LIMIT = 4
CLASSES = ("control", "interactive", "batch", "of no share")

works = st.builds(
    Work,
    at=st.floats(0, 2),
    service_class=st.sampled_from(CLASSES),
    calls=st.integers(1, 8),
    deadline_s=st.none() | st.floats(0, 1),
    keys=st.lists(st.sampled_from("ab"), min_size=1, max_size=3).map(tuple),
    rows=st.integers(1, LIMIT + 2),
    gives_up_at=st.just(inf) | st.floats(0, 3),
)
schedulers = st.one_of(
    st.just("steps").map(lambda _: Steps(LIMIT)),
    st.builds(Waves, st.just(LIMIT), window_s=st.floats(0, 0.5), stable_s=st.floats(0, 0.2)),
)


@given(schedulers, st.lists(works, max_size=25), st.integers(0, 9), st.sampled_from([(0.02, 0.001), (0.0, 0.01), (0.1, 0.0)]))
def test_everybody_ends_in_exactly_one_way_and_says_why(
    scheduler: Scheduler, jobs: list[Work], seed: int, form: tuple[float, float]
) -> None:
    draw = random.Random(seed)

    def call_time(key: Hashable, rows: int) -> float:
        return (form[0] + form[1] * rows) * draw.uniform(0.5, 2)

    record = SimulatedEngine(scheduler, call_time).run(jobs)
    assert Counter(id(end.work) for end in record.ends) == Counter(map(id, jobs))
    for end in record.ends:
        assert bool(end.why) == (end.how in {"shed", "rejected"})
        assert end.work.deadline_s is not None or end.how in {"done", "gave up"}
        had = sum(end.work in call.works for call in record.calls)
        assert had == end.work.calls if end.how == "done" else had < end.work.calls
    for call in record.calls:
        assert len(set(call.works)) == len(call.works)
        assert call.rows <= LIMIT or len(call.works) == 1


@given(schedulers, st.data())
def test_a_call_is_of_one_key_whatever_keys_and_rows_change_into(scheduler: Scheduler, data: st.DataObject) -> None:
    there: list[Member] = []
    now = 0.0
    for _ in range(data.draw(st.integers(1, 20))):
        for member in there:
            member.key, member.rows = data.draw(st.sampled_from("abc")), data.draw(st.integers(1, LIMIT + 1))
            member.calls_left = data.draw(st.integers(1, 5))
        if data.draw(st.booleans()):
            newcomer = Member(data.draw(st.sampled_from(CLASSES)), now, None, "a", 1, 3)
            assert scheduler.enter(newcomer, now) is None
            there.append(newcomer)
        if there and data.draw(st.booleans()):
            scheduler.leave(there.pop(data.draw(st.integers(0, len(there) - 1))))
        run = scheduler.choose(now).run
        assert len({id(member) for member in run}) == len(run)
        assert len({member.key for member in run}) <= 1
        assert all(any(member is one for one in there) for member in run)
        assert sum(member.rows for member in run) <= LIMIT or len(run) == 1
        took_s = data.draw(st.floats(0, 0.2))
        now += took_s + 0.001
        if run:
            scheduler.ran(run, took_s)


@settings(max_examples=25)
@given(schedulers, st.lists(st.sampled_from(CLASSES[:3]), min_size=1, max_size=6), st.integers(0, 99))
def test_nobody_starves_in_an_overload(scheduler: Scheduler, patient_classes: list[str], seed: int) -> None:
    """Three classes ask for four times what can be done, with deadlines; beside them wait jobs without one."""
    draw = random.Random(seed)
    flood = [
        Work(draw.uniform(0, 60), service_class, 2, deadline_s=draw.uniform(0.3, 3), keys=(draw.choice("xyz"),))
        for service_class in CLASSES[:3]
        for _ in range(400)
    ]
    patient = [Work(0.0, service_class, 4, keys=(f"patient {n}",)) for n, service_class in enumerate(patient_classes)]
    record = SimulatedEngine(scheduler, lambda key, rows: 0.1).run([*flood, *patient])
    for work in patient:
        end = next(end for end in record.ends if end.work is work)
        assert end.how == "done"
        assert end.at < 60


@pytest.mark.parametrize("scheduler", [Steps(8), Waves(8, 0.01, 0.002)], ids=["steps", "waves"])
def test_the_queue_of_two_sizes_takes_eight_rounds(scheduler: Scheduler) -> None:
    keys = ("a", "B", "a", "a")
    record = SimulatedEngine(scheduler).run([Work(0.0, "batch", 4, keys=(key,)) for key in keys])
    assert len(record.calls) == 8
