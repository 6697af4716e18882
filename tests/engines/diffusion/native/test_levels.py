"""Levels of noise and the way along them: the numbers of the papers, and worlds whose answer is known."""

import math
from typing import cast

import pytest
import torch
from diffusers.schedulers.scheduling_edm_euler import EDMEulerScheduler
from diffusers.schedulers.scheduling_flow_match_euler_discrete import FlowMatchEulerDiscreteScheduler
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from engines.diffusion.native.levels import Levels, Parametrisation, converted
from engines.diffusion.native.route import Place, Route, Solver
from fakes.listed import listed

SPREAD = 0.5
"""Clean values are normal with this deviation around 0."""

routes = st.builds(
    Route.over,
    st.builds(
        Levels,
        st.sampled_from(("flow", "edm")),
        shift=st.floats(0.3, 5),
        sigma_min=st.floats(1e-3, 0.1),
        sigma_max=st.floats(1, 200),
        rho=st.floats(2, 10),
    ),
    st.integers(1, 60),
    st.sampled_from(("flow", "edm")),
    st.sampled_from(("euler", "heun")),
)


@pytest.mark.parametrize("steps", [1, 2, 4, 18])
def test_levels_are_those_of_the_library(steps: int) -> None:
    flow = FlowMatchEulerDiscreteScheduler(shift=3.0)
    flow.set_timesteps(sigmas=[1 - step / steps for step in range(steps)])
    assert Levels("flow", shift=3.0).spaced(steps, "flow") == pytest.approx(listed(cast(Tensor, flow.sigmas)))
    edm = EDMEulerScheduler(sigma_min=0.002, sigma_max=80.0, rho=7.0)
    edm.set_timesteps(steps)
    assert Levels("edm").spaced(steps, "edm") == pytest.approx(listed(edm.sigmas))


def test_without_a_shift_flow_is_even_in_time() -> None:
    assert Levels("flow").spaced(4, "flow") == (1.0, 0.75, 0.5, 0.25, 0.0)


def test_flow_for_a_network_that_takes_sigma_begins_at_its_largest() -> None:
    first = Levels("flow").spaced(5, "edm")[0]
    assert converted(first, "flow", "edm").level == pytest.approx(80.0)


@given(st.floats(0, 0.999))
def test_there_and_back_is_where_it_was(t: float) -> None:
    there = converted(t, "flow", "edm")
    back = converted(there.level, "edm", "flow")
    assert back.level == pytest.approx(t)
    assert there.scale * back.scale == pytest.approx(1.0)


@given(routes)
def test_levels_fall_to_zero_and_calls_are_counted(route: Route) -> None:
    assert all(before > after for before, after in zip(route.levels, route.levels[1:], strict=False))
    assert route.levels[-1] == 0
    place, calls = route.begin(torch.ones(2)), 0
    while route.calls_left(place):
        left = route.calls_left(place)
        place, calls = route.after(place, place.x * 0.5), calls + 1
        assert route.calls_left(place) == left - 1
    assert place.step == route.steps
    assert calls == (route.steps if route.solver == "euler" else 2 * route.steps - 1)


@given(routes)
def test_a_network_that_knows_the_answer_is_believed_to_the_last_bit(route: Route) -> None:
    answer, place = torch.tensor([0.3, -0.7]), route.begin(torch.tensor([1.5, -0.2]))
    while route.calls_left(place):
        place = route.after(place, answer)
    assert torch.equal(place.x, answer)


@pytest.mark.parametrize("takes", ["flow", "edm"])
@pytest.mark.parametrize("own", ["flow", "edm"])
def test_both_parametrisations_end_where_the_exact_flow_does(own: Parametrisation, takes: Parametrisation) -> None:
    """For normal clean values the flow is linear and known: noise ε ends at SPREAD · ε."""
    noise = torch.tensor([1.0, -0.4], dtype=torch.float64)
    ended = _sampled(Route.over(Levels(own), 400, takes, "heun"), noise)
    expected = noise * SPREAD * (80 / math.hypot(80, SPREAD) if "edm" in (own, takes) else 1)
    assert torch.allclose(ended, expected, atol=1e-3)


def test_heun_is_nearer_than_euler_with_as_many_calls() -> None:
    noise = torch.tensor([1.0], dtype=torch.float64)
    assert _error("heun", 10, noise) < _error("euler", 19, noise) / 3


def _error(solver: Solver, steps: int, noise: Tensor) -> float:
    return abs(float(_sampled(Route.over(Levels("flow"), steps, "flow", solver), noise) - SPREAD * noise))


def _sampled(route: Route, noise: Tensor) -> Tensor:
    place = route.begin(noise)
    while route.calls_left(place):
        place = route.after(place, _believed(route, place))
    return place.x


def _believed(route: Route, place: Place) -> Tensor:
    """The mean of the clean values behind x, whose prior is normal."""
    level, scale = route.asked(place)
    x = place.x * scale
    signal, noise = (1 - level, level) if route.takes == "flow" else (1.0, level)
    return x * signal * SPREAD**2 / (signal**2 * SPREAD**2 + noise**2)
