"""Who gets the next free slot of a stage."""

from collections import OrderedDict, deque
from typing import Generic, TypeVar

from engines.messages.to_worker import ServiceClass

T = TypeVar("T")

ORDER = (ServiceClass.CONTROL, ServiceClass.INTERACTIVE, ServiceClass.BATCH)

LINE_PER_SLOT = 4
SHORTEST_LINE = 16


class WaitingLine(Generic[T]):
    """By class, then by arrival; of one class, each gateway gets its turn. Overflow policy: refuse."""

    def __init__(self, slots: int) -> None:
        self.places = max(LINE_PER_SLOT * slots, SHORTEST_LINE)
        self._classes: dict[ServiceClass, OrderedDict[str, deque[T]]] = {each: OrderedDict() for each in ORDER}

    def __len__(self) -> int:
        return sum(len(waiting) for gateways in self._classes.values() for waiting in gateways.values())

    @property
    def is_full(self) -> bool:
        return len(self) >= self.places

    def join(self, one: T, gateway: str, service_class: ServiceClass) -> None:
        self._classes[service_class].setdefault(gateway, deque()).append(one)

    def leave(self, one: T, gateway: str, service_class: ServiceClass) -> None:
        """Raises KeyError or ValueError for somebody who does not wait."""
        gateways = self._classes[service_class]
        gateways[gateway].remove(one)
        if not gateways[gateway]:
            del gateways[gateway]

    def next(self) -> T | None:
        """Whose turn it is; who gets it has left the line, and the turn goes to the next gateway."""
        for gateways in self._classes.values():
            if gateways:
                gateway, waiting = gateways.popitem(last=False)
                one = waiting.popleft()
                if waiting:
                    gateways[gateway] = waiting
                return one
        return None
