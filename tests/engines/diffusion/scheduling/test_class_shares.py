"""What each class has of the engine."""

import pytest

from engines.diffusion.scheduling import Member
from engines.diffusion.scheduling.shares import Shares
from engines.diffusion.scheduling.steps import Steps
from fakes.simulated_engine import Record, SimulatedEngine, Work

SHARES = {"control": 0.5, "interactive": 0.3, "batch": 0.15}


def alone(key: object, rows: int) -> float:
    return 0.010


def used(record: Record, service_class: str) -> float:
    """Its part of the busy time."""
    busy_s = sum(call.took_s for call in record.calls)
    return sum(call.took_s for call in record.calls if call.works[0].service_class == service_class) / busy_s


@pytest.mark.parametrize("service_class", SHARES)
def test_a_backlog_has_its_share_whatever_the_others_ask_for(service_class: str) -> None:
    urgent = [Work(0.01 * n, other, 10, deadline_s=0.4, keys=(other,)) for n in range(2000) for other in SHARES]
    mine = Work(0.0, service_class, 100_000, keys=("mine",))
    record = SimulatedEngine(Steps(1, SHARES), alone, limit_calls=2000).run(
        [work for work in urgent if work.service_class != service_class] + [mine]
    )
    assert used(record, service_class) > 0.95 * SHARES[service_class]


def test_what_a_class_leaves_goes_to_the_others() -> None:
    record = SimulatedEngine(Steps(1, SHARES), alone).run([Work(0.0, "batch", 500)])
    assert used(record, "batch") == 1.0
    assert record.now == pytest.approx(5.0)


def test_a_class_within_its_share_is_served_before_one_beyond_it_with_less_slack() -> None:
    flood = [Work(0.0, "batch", 20, deadline_s=2.0, keys=("flood",)) for _ in range(7)]
    tick = Work(1.0, "control", 4, deadline_s=0.5, keys=("tick",))
    record = SimulatedEngine(Steps(1, SHARES), alone).run([*flood, tick])
    done = next(end for end in record.ends if end.work is tick)
    assert done.at <= 1.0 + 5 * 0.010 + 1e-9


def test_a_call_s_time_is_divided_over_its_rows() -> None:
    shares = Shares(SHARES)
    shares.ran([Member("control", 0.0, None, "a", 3, 1), Member("batch", 0.0, None, "a", 1, 1)], rows=4, took_s=0.2)
    assert shares.used("control") == pytest.approx(3 * shares.used("batch"))
    assert shares.used("interactive") == 0


def test_a_class_nobody_reserved_for_still_gets_done() -> None:
    others = [Work(0.01 * n, "control", 1, deadline_s=0.1, keys=("c",)) for n in range(500)]
    unknown = Work(0.0, "unheard of", 5, keys=("u",))
    record = SimulatedEngine(Steps(1, SHARES), alone).run([*others, unknown])
    assert record.how(unknown) == "done"


@pytest.mark.parametrize(
    ("shares", "said"),
    [
        ({"control": 0.0}, "shares.control: expected more than 0 and at most 1, got 0"),
        ({"control": 1.5}, "shares.control: expected more than 0 and at most 1, got 1.5"),
        ({"control": float("nan")}, "shares.control: expected more than 0 and at most 1, got nan"),
        ({"control": 0.8, "batch": 0.4}, "shares: expected at most 1 together, got 1.2"),
    ],
)
def test_shares_that_cannot_be(shares: dict[str, float], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Steps(1, shares)
