"""A model that gives back what it gets, arrays and all."""

from collections.abc import Hashable, Sequence

from engines.models import InvalidInput, Produced
from engines.models.stateless import Stateless
from engines.payloads import Payload


class EchoingModel(Stateless):
    """An input with the attribute `copies` comes back that often out of one step."""

    units = "inputs"

    def warm_up(self) -> None: ...

    def batch_key(self, state: object, payload: Payload) -> Hashable:
        return 0

    def run(self, batch: Sequence[tuple[object, Payload]]) -> list[list[Produced] | InvalidInput]:
        return [[Produced(payload)] * int(payload.attributes.get("copies", 1)) for _, payload in batch]
