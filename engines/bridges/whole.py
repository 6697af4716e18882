"""An edge that the operator does not want chunked: its stage begins when the one before has ended."""

from collections.abc import Callable, Iterable

import msgspec

from engines.bridges.held import kept, refuse_too_much
from engines.parameters import Parameters
from engines.payloads import Payload
from engines.pipeline import Bridge, BridgeFactory, Edge, Pipeline, PipelineError


class Whole:
    """Keeps everything, then sends it through the edge's own bridge in one go: what comes out is the same, only when is not.
    A bridge goes on cutting what its stage cannot take in one piece."""

    def __init__(self, bridge: Bridge) -> None:
        self._bridge = bridge
        self._held: list[Payload] = []
        self._held_bytes = 0
        """Bounded by MOST_HELD_BYTES."""

    def feed(self, payload: Payload) -> list[Payload]:
        self._held_bytes += payload.nbytes + len(payload.text)
        refuse_too_much("upstream output", self._held_bytes)
        self._held.append(kept(payload))
        return []

    def finish(self) -> list[Payload]:
        inputs = [bridged for payload in self._held for bridged in self._bridge.feed(payload)]
        self._held = []
        return [*inputs, *self._bridge.finish()]


def whole(factory: BridgeFactory) -> Callable[[Parameters], Whole]:
    return lambda parameters: Whole(factory(parameters))


def with_whole_edges(pipeline: Pipeline, names: Iterable[str]) -> Pipeline:
    """With these edges, by their names, not chunked. Raises PipelineError for one that the pipeline does not have."""
    chosen, known = set(names), {edge.name for edge in pipeline.edges}
    if unknown := sorted(chosen - known):
        raise PipelineError(f"pipeline {pipeline.name!r} has no edge {unknown[0]!r}; it has {', '.join(sorted(known))}")
    edges = tuple(Edge(edge.source, edge.target, whole(edge.bridge)) if edge.name in chosen else edge for edge in pipeline.edges)
    return msgspec.structs.replace(pipeline, edges=edges)
