import itertools

import pytest

from sessions.states import ENDS, LEGAL, IllegalTransition, State, step


def test_the_usual_life() -> None:
    life = [State.QUEUED, State.OPENING, State.ACTIVE, State.DETACHED, State.ACTIVE, State.CLOSING, State.CLOSED]
    for source, target in itertools.pairwise(life):
        assert step("s", source, target) is target


@pytest.mark.parametrize("source", list(State))
@pytest.mark.parametrize("target", list(State))
def test_every_other_step_is_refused_with_expected_and_got(source: State, target: State) -> None:
    if target in LEGAL[source]:
        assert step("s", source, target) is target
        return
    with pytest.raises(IllegalTransition, match=rf"'s' is {source}: expected .*, got {target}"):
        step("s", source, target)


def test_ends_are_final() -> None:
    assert {State.CLOSED, State.FAILED, State.EXPIRED} == ENDS
