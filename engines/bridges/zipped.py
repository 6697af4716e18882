"""A join of legs that run in step, such as words with their sounds, or hidden states with tokens."""

from collections import deque

from engines.bridges.held import kept, refuse_too_much
from engines.parameters import Parameters
from engines.payloads import Array, Payload, Scalar
from engines.pipeline import BrokenStream

MOST_APART = 64
"""Payloads that one leg may be ahead of another. Policy: refuse, since legs that drift further apart do not belong together."""


class Zipped:
    """A Join: the first payload of every source becomes one input, then the second of every source, and so on.

    Text, arrays and attributes of all come together. A name in two of them is refused unless it is an attribute with the same
    value: the bridge of one edge has to rename it, since a join that did would hide which of them the stage gets.
    A leg that ends with fewer payloads than another is a fault as well, told as soon as it can be known.
    """

    def __init__(self, parameters: Parameters, sources: tuple[str, ...]) -> None:
        self._waiting = {source: deque[Payload]() for source in sources}
        """At most MOST_APART of each."""
        self._counts = dict.fromkeys(sources, 0)
        self._ended: set[str] = set()

    def feed(self, source: str, payload: Payload) -> list[Payload]:
        self._counts[source] += 1
        self._refuse_ended_early()
        waiting = self._waiting[source]
        waiting.append(payload)
        if all(self._waiting.values()):
            return [_merged({name: payloads.popleft() for name, payloads in self._waiting.items()})]
        waiting[-1] = kept(payload)
        self._refuse_far_apart(source)
        return []

    def finish(self, source: str) -> list[Payload]:
        self._ended.add(source)
        self._refuse_ended_early()
        return []

    def _refuse_far_apart(self, ahead: str) -> None:
        waiting = self._waiting[ahead]
        refuse_too_much(f"join: {ahead!r}", sum(payload.nbytes for payload in waiting))
        if len(waiting) > MOST_APART:
            behind = min(self._counts, key=self._counts.__getitem__)
            told = f"{self._told(ahead)} and {self._told(behind)}"
            raise BrokenStream(f"join: expected legs at most {MOST_APART} payloads apart, got {told}")

    def _refuse_ended_early(self) -> None:
        if not self._ended:
            return
        first = min(self._ended, key=self._counts.__getitem__)
        most = max(self._counts, key=self._counts.__getitem__)
        if self._counts[most] > self._counts[first]:
            told = f"{self._told(most)} and the end of {first!r} after {self._counts[first]}"
            raise BrokenStream(f"join: expected equally many payloads of every leg, got {told}")

    def _told(self, source: str) -> str:
        return f"{self._counts[source]} of {source!r}"


def _merged(payloads: dict[str, Payload]) -> Payload:
    texts = {source: payload.text for source, payload in payloads.items() if payload.text}
    if len(texts) > 1:
        raise _doubled("text", *texts)
    arrays: dict[str, tuple[str, Array]] = {}
    attributes: dict[str, tuple[str, Scalar]] = {}
    for source, payload in payloads.items():
        for name, array in payload.arrays.items():
            if name in arrays:
                raise _doubled(f"array {name!r}", arrays[name][0], source)
            arrays[name] = (source, array)
        for name, value in payload.attributes.items():
            if attributes.setdefault(name, (source, value))[1] != value:
                raise _doubled(f"attribute {name!r}", attributes[name][0], source)
    return Payload(
        text="".join(texts.values()),
        arrays={name: array for name, (_, array) in arrays.items()},
        attributes={name: value for name, (_, value) in attributes.items()},
    )


def _doubled(what: str, *sources: str) -> BrokenStream:
    return BrokenStream(f"join: expected {what} from one leg, got it from {' and '.join(map(repr, sources))}")
