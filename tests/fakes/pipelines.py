"""Small pipelines over stages that take no particular parameters."""

from collections.abc import Sequence

from engines.bridges.zipped import Zipped
from engines.parameters import Activity, Generation, Speech
from engines.payloads import Payload
from engines.pipeline import Edge, ExecutionType, JoinFactory, Output, Pipeline, Stage


class Unchanged:
    def __init__(self, parameters: object) -> None:
        pass

    def feed(self, payload: Payload) -> list[Payload]:
        return [payload]

    def finish(self) -> list[Payload]:
        return []


class ToLeft(Unchanged):
    """Text becomes the attribute `left`, so that a join can tell the two apart."""

    name = "left"

    def feed(self, payload: Payload) -> list[Payload]:
        return [Payload(attributes={self.name: payload.text})]


class ToRight(ToLeft):
    name = "right"


def _stage(name: str, join: JoinFactory | None = None) -> Stage:
    return Stage(name, ExecutionType.GENERATION, emits=name, parameters=Activity, join=join)


CASCADE = Pipeline(
    name="cascade",
    stages=(
        _stage("ear"),
        Stage("mind", ExecutionType.AR, "text", Generation),
        Stage("mouth", ExecutionType.GENERATION, "audio", Speech),
    ),
    edges=(Edge("ear", "mind", Unchanged), Edge("mind", "mouth", Unchanged)),
    outputs=(Output("heard", "ear"), Output("text", "mind"), Output("audio", "mouth")),
)
"""ear → mind → mouth, each of which is an output."""


def graph(feeders: Sequence[Sequence[int]]) -> Pipeline:
    """Stage s0 feeds the others, directly or not: `feeders[i]` are the numbers of the stages that feed stage i + 1, which takes
    what they send as it comes. Every stage is an output."""
    names = [f"s{number}" for number in range(len(feeders) + 1)]
    return Pipeline(
        name="graph",
        stages=tuple(_stage(name) for name in names),
        edges=tuple(Edge(names[source], names[target], Unchanged) for target, fed in enumerate(feeders, 1) for source in fed),
        outputs=tuple(Output(f"o{number}", name) for number, name in enumerate(names)),
    )


def tree(parents: Sequence[int]) -> Pipeline:
    """A graph without joins: `parents[i]` is the number of the stage that feeds stage i + 1."""
    return graph([(parent,) for parent in parents])


ECHOES = Pipeline(
    name="fakes.pipelines:ECHOES",
    stages=(_stage("first"), _stage("second")),
    edges=(Edge("first", "second", Unchanged),),
    outputs=(Output("once", "first"), Output("twice", "second")),
)
"""Two stages of fakes.echo_model, for real worker processes; named as a deployment names it."""

DIAMOND = Pipeline(
    name="fakes.pipelines:DIAMOND",
    stages=(_stage("top"), _stage("left"), _stage("right"), _stage("bottom", join=Zipped)),
    edges=(
        Edge("top", "left", Unchanged),
        Edge("top", "right", Unchanged),
        Edge("left", "bottom", ToLeft),
        Edge("right", "bottom", ToRight),
    ),
    outputs=(Output("one", "left"), Output("both", "bottom")),
)
"""Fans out and joins: what `left` and `right` made of each text comes to `bottom` together, as attributes of these names."""
