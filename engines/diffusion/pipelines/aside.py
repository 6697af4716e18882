"""Code that is left in the middle of a call and gone on with later: the one file that knows greenlets, which have no types."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar, cast

from greenlet import GreenletExit, getcurrent, greenlet

T = TypeVar("T")


@dataclass(slots=True, frozen=True)
class Finished(Generic[T]):
    """What the function returned."""

    result: T


class Aside(Generic[T]):
    """`function`, run apart. All calls of one have to come from one thread, and from outside of it."""

    def __init__(self, function: Callable[[], T]) -> None:
        self._greenlet = greenlet(lambda: Finished(function()))

    def go_on(self, value: object = None) -> object:
        """From the start, or from where it waits, whose `leave` returns `value`: to the next `leave`, or to the end, which is a
        Finished. Raises what the function raises."""
        return self._greenlet.switch(value) if self._greenlet else self._greenlet.switch()

    def drop(self) -> None:
        """It ends where it waits, as by an exception that is not caught; its frames are let go."""
        self._greenlet.throw(GreenletExit)


def leave(left_with: object) -> object:
    """Out of the function that runs aside: whoever had it go on gets `left_with`. Returns what it goes on with."""
    parent = getcurrent().parent
    assert parent is not None, "networks of a job's pipeline are called by that pipeline alone"
    return cast(object, parent.switch(left_with))
