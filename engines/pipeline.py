"""Pipelines: stages, edges between them and the outputs a request may want. Data, owned by whoever integrates a model."""

from collections.abc import Callable, Iterable
from enum import StrEnum
from typing import Protocol, TypeAlias

import msgspec

from engines.parameters import Parameters
from engines.payloads import Payload


class ExecutionType(StrEnum):
    AR = "AR"
    GENERATION = "GENERATION"
    DIFFUSION = "DIFFUSION"


class BrokenStream(RuntimeError):
    """What came along an edge is not what its bridge or join was promised. It ends the request: the fault of a stage before."""


class Bridge(Protocol):
    """Turns one request's upstream chunks into inputs of the downstream stage. Runs in the worker of the downstream stage.

    Both methods raise BrokenStream for a stream that contradicts itself. What a bridge keeps of an array is a copy: what comes
    lies in the producer's memory, and a view would hold its place there.
    """

    def feed(self, payload: Payload) -> list[Payload]: ...

    def finish(self) -> list[Payload]:
        """The upstream stage has ended; what is still owed."""
        ...


BridgeFactory: TypeAlias = Callable[[Parameters], Bridge]


class Join(Protocol):
    """Makes inputs of one stage from what the bridges of several edges give. Like a bridge; `source` is an upstream stage."""

    def feed(self, source: str, payload: Payload) -> list[Payload]: ...

    def finish(self, source: str) -> list[Payload]:
        """This upstream stage has ended; what is still owed."""
        ...


JoinFactory: TypeAlias = Callable[[Parameters, tuple[str, ...]], Join]
"""Called with the upstream stages that take part in the request, in the order of the pipeline's edges."""


class Stage(msgspec.Struct, frozen=True):
    """`emits` is the kind of its chunks; `parameters` is the type of parameters that a request may give it.

    `intake` is the bridge for input that the caller feeds directly; None: what the caller pushes goes to the model as it is.
    `join` merges what several upstream stages send; None: one input after the other, as they come.
    """

    name: str
    execution: ExecutionType
    emits: str
    parameters: type[Parameters]  # pyright: ignore[reportInvalidTypeForm]
    intake: BridgeFactory | None = None
    join: JoinFactory | None = None


class Edge(msgspec.Struct, frozen=True):
    """`bridge` gets the parameters of the downstream stage."""

    source: str
    target: str
    bridge: BridgeFactory

    @property
    def name(self) -> str:
        """As operators write it."""
        return f"{self.source}->{self.target}"


class Output(msgspec.Struct, frozen=True):
    name: str
    stage: str


class PipelineError(ValueError):
    """The pipeline's record contradicts itself."""


class Pipeline(msgspec.Struct, frozen=True):
    """`entries` are the stages that a caller may feed; empty: all of them."""

    name: str
    stages: tuple[Stage, ...]
    edges: tuple[Edge, ...]
    outputs: tuple[Output, ...]
    entries: tuple[str, ...] = ()

    def stage(self, name: str) -> Stage:
        for stage in self.stages:
            if stage.name == name:
                return stage
        raise PipelineError(f"pipeline {self.name!r} has no stage {name!r}; it has {', '.join(s.name for s in self.stages)}")

    def edge(self, source: str, target: str) -> Edge:
        for edge in self.edges:
            if (edge.source, edge.target) == (source, target):
                return edge
        raise PipelineError(f"pipeline {self.name!r} has no edge {source!r} → {target!r}")

    def output_stage(self, output: str) -> str:
        for candidate in self.outputs:
            if candidate.name == output:
                return candidate.stage
        raise PipelineError(f"pipeline {self.name!r} has no output {output!r}; it has {', '.join(o.name for o in self.outputs)}")

    def downstream(self, stage: str) -> tuple[str, ...]:
        return tuple(edge.target for edge in self.edges if edge.source == stage)

    def upstreams(self, stage: str, active: Iterable[str]) -> tuple[str, ...]:
        """Those of the `active` stages that feed this one; none: the caller does."""
        running = set(active)
        return tuple(edge.source for edge in self.edges if edge.target == stage and edge.source in running)

    def possible_entries(self) -> tuple[str, ...]:
        return self.entries or tuple(stage.name for stage in self.stages)

    def active_stages(self, entry: str, outputs: Iterable[str]) -> tuple[str, ...]:
        """The stages on a path from `entry` to a stage of a wanted output, in the pipeline's order.

        Raises PipelineError for an unknown name, for a stage that no caller may feed and for an output that cannot be
        reached from `entry`.
        """
        self.stage(entry)
        if entry not in self.possible_entries():
            raise PipelineError(f"pipeline {self.name!r}: nobody may feed {entry!r}, only {', '.join(self.entries)}")
        reached_from_entry = self._closure(entry, forward=True)
        active: set[str] = set()
        for output in outputs:
            target = self.output_stage(output)
            if target not in reached_from_entry:
                raise PipelineError(f"pipeline {self.name!r}: output {output!r} cannot be reached from stage {entry!r}")
            active |= reached_from_entry & self._closure(target, forward=False)
        return tuple(stage.name for stage in self.stages if stage.name in active)

    def offers(self, output: str, stages: Iterable[str]) -> bool:
        """Whether `stages` alone suffice to make this output from something that a caller may feed."""
        target = self.output_stage(output)
        running = set(stages)
        for entry in self.possible_entries():
            if target in self._closure(entry, forward=True) and running.issuperset(self.active_stages(entry, (output,))):
                return True
        return False

    def _closure(self, start: str, *, forward: bool) -> set[str]:
        seen, frontier = {start}, [start]
        while frontier:
            here = frontier.pop()
            for edge in self.edges:
                origin, other = (edge.source, edge.target) if forward else (edge.target, edge.source)
                if origin == here and other not in seen:
                    seen.add(other)
                    frontier.append(other)
        return seen

    def check(self) -> None:
        """Raises PipelineError for doubled names, doubled or dangling edges, dangling outputs or entries, and cycles."""
        names = [stage.name for stage in self.stages]
        _refuse_doubles(self.name, "stage", names)
        _refuse_doubles(self.name, "output", [output.name for output in self.outputs])
        for edge in self.edges:
            self.stage(edge.source)
            self.stage(edge.target)
        for name in (*self.entries, *(output.stage for output in self.outputs)):
            self.stage(name)
        _refuse_doubles(self.name, "edge", [edge.name for edge in self.edges])
        for name in names:
            if any(name in self._closure(target, forward=True) for target in self.downstream(name)):
                raise PipelineError(f"pipeline {self.name!r} has a cycle through stage {name!r}")


def _refuse_doubles(pipeline: str, what: str, names: list[str]) -> None:
    for name in names:
        if names.count(name) > 1:
            raise PipelineError(f"pipeline {pipeline!r} names the {what} {name!r} twice")
