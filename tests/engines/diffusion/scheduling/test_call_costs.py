"""What a call is expected to cost."""

import random
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.diffusion.scheduling.costs import KEYS, PROBE_AFTER, TRUSTED, CostModel, Curve, Prior

PRIOR = Prior(fixed_s=0.004, row_s=0.001)


def learnt(*measured: tuple[int, float]) -> Curve:
    curve = Curve(PRIOR)
    for rows, took_s in measured:
        curve.observe(rows, took_s)
    return curve


def test_before_any_call_the_prior_is_expected_and_nothing_is_sure() -> None:
    curve = CostModel(PRIOR).curve("never ran")
    assert curve.of(3) == pytest.approx(0.007)
    assert curve.surely(3) == 0


def test_what_was_measured_is_expected_and_what_lies_between_is_on_the_line() -> None:
    curve = learnt((1, 0.010), (5, 0.030))
    assert curve.of(1) == pytest.approx(0.010)
    assert curve.of(2) == pytest.approx(0.015)


def test_beyond_what_was_measured_the_line_goes_on() -> None:
    curve = learnt((2, 0.020), (4, 0.030))
    assert curve.of(8) == pytest.approx(0.050)
    assert curve.of(1) == pytest.approx(0.015)


def test_after_one_size_the_prior_gives_the_form() -> None:
    assert learnt((1, 0.050)).of(6) == pytest.approx(0.100)


def test_sure_is_only_what_was_measured() -> None:
    curve = learnt(*[(2, 0.020)] * TRUSTED)
    for sure in (curve.surely, curve.usually):
        assert [sure(rows) for rows in (1, 2, 8)] == pytest.approx([0.010, 0.020, 0.020])


def test_nothing_is_sure_after_the_first_calls() -> None:
    curve = learnt(*[(2, 0.020)] * (TRUSTED - 1))
    assert (curve.surely(2), curve.usually(2)) == (0, 0)
    assert curve.of(2) == 0.020


def test_what_was_done_in_so_long_can_be_done_in_so_long() -> None:
    curve = learnt(*[(1, 0.010), (1, 0.020)] * 10, (1, 0.020))
    assert curve.surely(1) == pytest.approx(0.010, rel=0.1)
    assert curve.usually(1) == pytest.approx(0.015, rel=0.03)


def test_a_size_that_was_slow_at_its_only_call_is_sure_to_cost_no_more_than_a_greater_one() -> None:
    curve = learnt((1, 0.200), *[(8, 0.020)] * TRUSTED)
    assert curve.surely(1) <= 0.020


def test_fewer_rows_are_never_expected_below_their_part() -> None:
    assert learnt((4, 0.010), (5, 0.100)).of(2) == pytest.approx(0.005)


def test_the_first_call_of_a_shape_may_have_compiled() -> None:
    assert learnt((1, 5.0), (1, 0.010)).of(1) == pytest.approx(0.010)


def test_a_pause_of_the_machine_is_not_the_cost_of_a_shape() -> None:
    assert learnt(*[(1, 0.010)] * 50, (1, 3.0)).of(1) == pytest.approx(0.0105)


def test_a_machine_that_became_slower_is_noticed() -> None:
    curve = learnt(*[(1, 0.010)] * 50, *[(1, 0.050)] * 120)
    assert curve.of(1) == pytest.approx(0.050, rel=0.05)


def test_sizes_that_do_not_run_any_more_follow_those_that_do() -> None:
    curve = learnt(*[(1, 0.010), (4, 0.020)] * 50, *[(4, 0.008)] * 150)
    assert curve.of(4) == pytest.approx(0.008, rel=0.02)
    assert curve.of(1) <= curve.of(4)


def test_noise_makes_no_size_seem_cheaper_or_dearer() -> None:
    draw = random.Random(1)
    sizes = [draw.randint(1, 8) for _ in range(2000)]
    curve = learnt(*[(rows, (0.004 + 0.0005 * rows) * draw.lognormvariate(-0.08, 0.4)) for rows in sizes])
    for rows in range(1, 9):
        assert curve.of(rows) == pytest.approx(0.004 + 0.0005 * rows, rel=0.2)


def test_a_cost_that_only_rejects_is_believed_less_each_time_until_it_is_measured_again() -> None:
    curve = learnt(*[(1, 1.0)] * TRUSTED)
    for _ in range(50):
        curve.doubt()
    assert curve.surely(1) < 0.01
    assert curve.of(1) == 1.0
    curve.observe(1, 1.0)
    assert curve.surely(1) > 0.9


def test_the_best_batch_does_most_rows_a_second() -> None:
    assert learnt((1, 0.010), (8, 0.020)).best([1, 2, 4, 8]) == 3
    assert learnt((1, 0.010), (2, 0.021), (4, 0.044)).best([1, 2, 4]) == 0
    padded = learnt((1, 0.010), (4, 0.010), (5, 0.014), (8, 0.014))
    assert padded.best([1, 2, 3, 4, 5]) == 3
    assert padded.best([1, 2, 3, 4, 5, 6, 7, 8]) == 7


def test_a_batch_that_did_not_pay_is_tried_again_now_and_then() -> None:
    curve = learnt((1, 0.010), (2, 0.100))
    assert sum(curve.best([1, 2]) for _ in range(3 * PROBE_AFTER)) == 3


def test_only_so_many_keys_are_kept_and_those_that_run_stay() -> None:
    model = CostModel(PRIOR)
    for number in range(2 * KEYS):
        for _ in range(TRUSTED):
            model.observe(number, 1, 0.5)
        model.observe("always", 1, 0.5)
    assert model.curve(0).surely(1) == 0
    assert model.curve("always").surely(1) > 0
    assert model.curve(2 * KEYS - 1).surely(1) > 0


def test_a_clock_that_stood_still_teaches_nothing() -> None:
    model = CostModel(PRIOR)
    for took_s in (0.0, -1.0, 5e-324):
        model.observe("a", 1, took_s)
    assert model.curve("a").of(1) == pytest.approx(0.005)


@given(st.lists(st.tuples(st.integers(1, 16), st.floats(1e-5, 10)), max_size=40))
def test_more_rows_never_cost_less(measured: list[tuple[int, float]]) -> None:
    curve = learnt(*measured)
    costs = [curve.of(rows) for rows in range(1, 33)]
    assert all(cost > 0 for cost in costs)
    assert all(fewer <= more * (1 + 1e-9) for fewer, more in pairwise(costs))
    assert all(curve.surely(rows) <= curve.usually(rows) <= curve.of(rows) * (1 + 1e-9) for rows in range(1, 33))
