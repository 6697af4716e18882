"""The state handling of a GENERATION model that keeps nothing for a request."""

from engines.models import Produced
from engines.models.snapshots import Snapshot, saved
from engines.parameters import Parameters
from engines.payloads import Payload

KIND = "stateless 1"


class Stateless:
    """To inherit from; `open` may be overridden to refuse parameters."""

    def open(self, parameters: Parameters) -> None:
        return None

    def reset(self, state: None) -> None:
        pass

    def snapshot(self, state: None) -> Payload:
        return saved(KIND)

    def restore(self, parameters: Parameters, snapshot: Payload) -> None:
        Snapshot(KIND, snapshot)
        return self.open(parameters)

    def flush(self, state: None) -> list[Produced]:
        return []

    def close(self, state: None) -> None:
        pass
