"""Early rejection: how much work of a class is taken on before a newcomer is told at once that there is too much."""

from collections.abc import Mapping

WASTED = 0.15
"""When a job was begun in vain, its class takes on less: by so much of what it had promised others when that job came."""
DONE = 0.002
"""And for every job that is done, so much more of the engine: more than one in 50 begun in vain narrows the room."""


class Rooms:
    """The part of the engine's time that a class may promise: from all of it down to half of what is reserved for it.

    In an overload that goes on, jobs taken on in the order of slack are all late together. Here each class finds for itself the
    amount of work that it gets done, as a sender of packets finds the width of its way.
    """

    def __init__(self, reserved: Mapping[str, float]) -> None:
        self._parts = dict.fromkeys(reserved, 1.0)
        self._least = {service_class: share / 2 for service_class, share in reserved.items()}

    def part(self, service_class: str) -> float:
        return self._parts.get(service_class, 1.0)

    def wasted(self, service_class: str, promised: float) -> None:
        """`promised` is the part that was, to others, when it was taken on. Where that was little, the job is late for some other
        reason: a slow call, or another class."""
        if service_class in self._parts:
            part = self._parts[service_class] - WASTED * min(promised, self._parts[service_class])
            self._parts[service_class] = max(self._least[service_class], part)

    def done(self, service_class: str) -> None:
        if service_class in self._parts:
            self._parts[service_class] = min(1.0, self._parts[service_class] + DONE)

    def idle(self) -> None:
        """Nothing was left to do: this is no overload, whatever was late."""
        self._parts = dict.fromkeys(self._parts, 1.0)
