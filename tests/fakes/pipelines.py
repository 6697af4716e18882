"""Small pipelines over stages that take no particular parameters."""

from engines.parameters import Activity, Generation, Speech
from engines.payloads import Payload
from engines.pipeline import Edge, ExecutionType, Output, Pipeline, Stage


class Unchanged:
    def __init__(self, parameters: object) -> None:
        pass

    def feed(self, payload: Payload) -> list[Payload]:
        return [payload]

    def finish(self) -> list[Payload]:
        return []


def _stage(name: str) -> Stage:
    return Stage(name, ExecutionType.GENERATION, emits=name, parameters=Activity)


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


def tree(parents: list[int]) -> Pipeline:
    """Stage s0 feeds the others: `parents[i]` is the number of the stage that feeds stage i + 1. Every stage is an output."""
    names = [f"s{number}" for number in range(len(parents) + 1)]
    return Pipeline(
        name="tree",
        stages=tuple(_stage(name) for name in names),
        edges=tuple(Edge(names[parent], names[child], Unchanged) for child, parent in enumerate(parents, start=1)),
        outputs=tuple(Output(f"o{number}", name) for number, name in enumerate(names)),
    )


ECHOES = Pipeline(
    name="fakes.pipelines:ECHOES",
    stages=(_stage("first"), _stage("second")),
    edges=(Edge("first", "second", Unchanged),),
    outputs=(Output("once", "first"), Output("twice", "second")),
)
"""Two stages of fakes.echo_model, for real worker processes; named as a deployment names it."""
