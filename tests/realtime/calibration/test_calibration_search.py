"""How many sessions hold: found by trying, whatever number it is."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from realtime.calibration.probe import Verdict, judged
from realtime.calibration.search import largest


class FakeProbe:
    """Holds up to so many; `spoiled` are the runs, counted from 0, that fail by bad luck."""

    kind = "fake"

    def __init__(self, holds: int, spoiled: frozenset[int] = frozenset()) -> None:
        self.tried: list[int] = []
        self._holds = holds
        self._spoiled = spoiled

    async def run(self, sessions: int) -> Verdict:
        lucky = len(self.tried) not in self._spoiled
        self.tried.append(sessions)
        return judged({"late_ms": sessions if lucky else 1_000}, {"late_ms": self._holds})


@given(holds=st.integers(0, 100), most=st.integers(1, 100))
async def test_it_finds_the_number_that_holds_and_tries_no_more_than_it_may(holds: int, most: int) -> None:
    probe = FakeProbe(holds)
    found = await largest(probe, most, lambda _: None)
    assert found.sessions == min(holds, most)
    assert max(probe.tried) <= most
    assert len(set(probe.tried)) <= 25


async def test_the_figures_are_those_of_the_number_found() -> None:
    said: list[str] = []
    found = await largest(FakeProbe(5), 64, said.append)
    assert found.verdict.figures == {"late_ms": 5}
    assert said[0] == "1 at once: late_ms 1; all bars hold"
    assert "6 at once: late_ms 6; too much: late_ms 6, at most 5" in said


async def test_what_spoils_one_run_does_not_count() -> None:
    probe = FakeProbe(4, frozenset({0, 3}))
    assert (await largest(probe, 8, lambda _: None)).sessions == 4
    assert probe.tried[:2] == [1, 1]


@pytest.mark.parametrize(("late", "broken"), [(9, ()), (10, ()), (11, ("late_ms 11, at most 10",))])
def test_a_bar_holds_up_to_its_very_value(late: float, broken: tuple[str, ...]) -> None:
    assert judged({"late_ms": late}, {"late_ms": 10}).broken == broken
