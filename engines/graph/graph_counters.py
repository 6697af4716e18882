"""What the graph has done since it started, for whoever publishes it."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from engines.requests import StageTiming


class Outcome(StrEnum):
    COMPLETED = "completed"
    FAILED = "failed"
    ABORTED = "aborted"


@dataclass
class StageTotals:
    """Sums over the requests that have ended, in milliseconds; `started` of them got a first chunk."""

    requests: int = 0
    started: int = 0
    chunks: int = 0
    first_ms: float = 0.0
    queue_ms: float = 0.0
    run_ms: float = 0.0

    def add(self, timing: StageTiming) -> None:
        self.requests += 1
        self.chunks += timing.chunks
        self.queue_ms += timing.queue_ms
        self.run_ms += timing.run_ms
        if timing.first_ms is not None:
            self.started += 1
            self.first_ms += timing.first_ms


@dataclass
class GraphCounters:
    """`given_up` counts workers that did not acknowledge an abort in time."""

    submitted: int = 0
    ended: Counter[Outcome] = field(default_factory=lambda: Counter[Outcome]())
    given_up: int = 0
    stages: dict[str, StageTotals] = field(default_factory=lambda: dict[str, StageTotals]())

    def end(self, outcome: Outcome, timing: Mapping[str, StageTiming]) -> None:
        self.ended[outcome] += 1
        for stage, of_stage in timing.items():
            self.stages.setdefault(stage, StageTotals()).add(of_stage)
