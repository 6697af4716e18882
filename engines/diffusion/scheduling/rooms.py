"""Early rejection: how much work of a class is taken on before a newcomer is told at once that there is too much."""

from collections.abc import Iterable

WASTED = 0.9
"""When a job was begun in vain, its class takes on so much of what it did."""
DONE = 0.002
"""And for every job that is done in time, so much more of the engine: more than one in 50 begun in vain narrows the room."""
LEAST = 0.05


class Rooms:
    """The part of the engine's time that a class may promise, from 1 (all of it) downwards.

    In an overload that goes on, jobs taken on in the order of slack are all late together. Here each class finds for itself the
    amount of work that it gets done, as a sender of packets finds the width of its way.
    """

    def __init__(self, classes: Iterable[str]) -> None:
        self._parts = dict.fromkeys(classes, 1.0)

    def part(self, service_class: str) -> float:
        return self._parts.get(service_class, 1.0)

    def wasted(self, service_class: str) -> None:
        self._parts[service_class] = max(LEAST, self.part(service_class) * WASTED)

    def done(self, service_class: str) -> None:
        self._parts[service_class] = min(1.0, self.part(service_class) + DONE)
