"""An edge whose stages understand each other: every chunk is an input, and nothing is kept."""

from engines.parameters import Parameters
from engines.payloads import Payload


class AsItIs:
    def __init__(self, parameters: Parameters) -> None:
        pass

    def feed(self, payload: Payload) -> list[Payload]:
        return [payload]

    def finish(self) -> list[Payload]:
        return []
