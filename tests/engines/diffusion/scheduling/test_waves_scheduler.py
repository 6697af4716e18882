"""Whole requests that begin together."""

import pytest

from engines.diffusion.scheduling.waves import Waves
from fakes.simulated_engine import Record, SimulatedEngine, Work


def rounds(works: list[Work], limit: int = 4, window_s: float = 0.050, stable_s: float = 0.010) -> Record:
    return SimulatedEngine(Waves(limit, window_s, stable_s)).run(works)


def batch(at: float, calls: int = 4, *, key: str = "a", deadline_s: float | None = None, rows: int = 1) -> Work:
    return Work(at, "batch", calls, deadline_s, (key,), rows)


def test_another_key_in_between_holds_nobody_up() -> None:
    a, other, b, c = works = [batch(0.0), batch(0.0, key="other"), batch(0.0), batch(0.0)]
    record = rounds(works)
    assert [call.works for call in record.calls] == [(a, b, c)] * 4 + [(other,)] * 4


def test_a_full_wave_begins_at_once() -> None:
    assert rounds([batch(1.0) for _ in range(4)]).calls[0].at == 1.0


def test_a_wave_begins_when_nobody_has_come_for_a_while() -> None:
    record = rounds([batch(1.0), batch(1.004)])
    assert record.calls[0].at == 1.004 + 0.010
    assert record.calls[0].rows == 2


def test_but_its_first_never_waits_longer_than_the_window() -> None:
    record = rounds([batch(1.0 + 0.008 * n) for n in range(30)], limit=16)
    assert record.calls[0].at == 1.0 + 0.050
    assert record.calls[0].rows == 7


def test_nobody_joins_a_wave_under_way_and_nobody_is_held_in_it_until_its_end() -> None:
    long, short, later = batch(0.0, 6), batch(0.0, 2), batch(0.012)
    record = rounds([long, short, later])
    assert [call.works for call in record.calls] == [(long, short)] * 2 + [(long,)] * 4 + [(later,)] * 4


def test_a_key_that_waits_for_more_lets_others_run() -> None:
    waiting, full = batch(0.0, key="waits"), [batch(0.0) for _ in range(4)]
    record = rounds([waiting, *full])
    assert record.calls[0].at == 0.0
    assert record.calls[0].key == "a"
    assert record.how(waiting) == "done"


def test_no_wave_waits_until_somebody_in_it_is_late() -> None:
    warm = batch(0.0, 1, deadline_s=0.020)
    tight = batch(1.0, 10, deadline_s=0.060)
    record = rounds([warm, tight], window_s=10.0, stable_s=5.0)
    end = next(end for end in record.ends if end.work is tight)
    assert end.in_time
    assert end.at > 1.050
    assert record.calls[1].at == pytest.approx(1.060 - 11 * 0.0045)  # a call's time is left for what may come between


def test_a_wave_is_no_greater_than_all_in_it_bear_to_their_end() -> None:
    warm = [batch(0.0, 1) for _ in range(4)]
    tight, others = batch(1.0, 4, deadline_s=0.0205), [batch(1.0, 4, deadline_s=9.0) for _ in range(3)]
    record = rounds([*warm, tight, *others])
    assert next(end for end in record.ends if end.work is tight).in_time
    assert record.calls[1].rows < 4


def test_a_wave_whose_keys_part_comes_together_again() -> None:
    works = [
        Work(0.0, "batch", 4, keys=("begin", "long prompt", "steps")),
        Work(0.0, "batch", 4, keys=("begin", "short prompt", "steps")),
    ]
    record = rounds(works)
    assert [(call.key, call.rows) for call in record.calls] == [
        ("begin", 2),
        ("long prompt", 1),
        ("short prompt", 1),
        ("steps", 2),
        ("steps", 2),
    ]


def test_the_urgent_wave_begins_first() -> None:
    calm = [batch(0.0, key="calm") for _ in range(4)]
    urgent = [batch(0.0, key="urgent", deadline_s=0.1) for _ in range(4)]
    assert rounds([*calm, *urgent]).calls[0].key == "urgent"


def test_after_everybody_has_given_up_the_next_wave_begins() -> None:
    gone = [Work(0.0, "batch", 100, gives_up_at=0.020) for _ in range(4)]
    next_wave = [batch(0.001) for _ in range(4)]
    record = rounds([*gone, *next_wave])
    assert record.now < 0.020 + 5 * 0.006 + 1e-9
    assert [record.how(work) for work in next_wave] == ["done"] * 4
