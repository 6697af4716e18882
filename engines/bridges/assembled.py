"""One input of everything that comes: for files that are sent in pieces."""

from collections import defaultdict

import numpy as np

from engines.bridges.held import refuse_too_much
from engines.parameters import Parameters
from engines.payloads import Array, Payload, Scalar


class Assembled:
    """Pieces of an array [n] with one name are joined in their order, texts likewise; of attributes the last of a name stays."""

    def __init__(self, parameters: Parameters) -> None:
        self._pieces: defaultdict[str, list[np.ndarray]] = defaultdict(list)
        self._held_bytes = 0
        """Bounded by MOST_HELD_BYTES."""
        self._text = ""
        self._attributes: dict[str, Scalar] = {}

    def feed(self, payload: Payload) -> list[Payload]:
        self._held_bytes += payload.nbytes + len(payload.text)
        refuse_too_much("files", self._held_bytes)
        self._text += payload.text
        self._attributes |= payload.attributes
        for name, array in payload.arrays.items():
            self._pieces[name].append(array.numpy().copy())
        return []

    def finish(self) -> list[Payload]:
        arrays = {name: Array.of(np.concatenate(pieces)) for name, pieces in self._pieces.items()}
        self._pieces.clear()
        whole = Payload(self._text, arrays, self._attributes)
        return [whole] if whole != Payload() else []
