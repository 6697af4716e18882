"""Who asks a diffusion engine for what, and when: control loops, chunks of speech or action, frames of a world."""

import random
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import msgspec

from engines.diffusion.scheduling import Scheduler
from fakes.simulated_engine import Record, SimulatedEngine, Work


class Kind(msgspec.Struct, frozen=True):
    """Jobs of one service class: `hz` of each client, `deadline_s` from the release, `clients` in one unit of load."""

    name: str
    service_class: str
    hz: float
    deadline_s: float
    steps: int
    clients: int


KINDS = (
    Kind("control", "control", hz=10, deadline_s=0.050, steps=4, clients=1),
    Kind("chunk", "interactive", hz=2, deadline_s=0.200, steps=10, clients=2),
    Kind("frames", "batch", hz=2, deadline_s=0.500, steps=12, clients=1),
)
STEPS_PER_LOAD = sum(kind.hz * kind.steps * kind.clients for kind in KINDS)
"""Steps a second that a load of 1 asks for."""
UNITS = 8
"""Of clients, whatever the load: it is their rate that is scaled, so that a load has no jumps."""
JITTER = 0.25
"""A release comes so much of its period too early or too late, at most."""

Crowd: TypeAlias = Callable[[float, float, int], list[Work]]
"""Of a load, seconds and a seed."""


def clients(load: float, duration_s: float, seed: int) -> list[Work]:
    """Each with a rhythm of its own, and not quite punctual."""
    draw = random.Random(seed)
    works: list[Work] = []
    for kind in KINDS:
        period_s = UNITS / (kind.hz * load)
        for _ in range(UNITS * kind.clients):
            phase = draw.random()
            for turn in range(int(duration_s / period_s)):
                works.append(_work((turn + phase + draw.uniform(-JITTER, JITTER)) * period_s, kind))
    return works


def strangers(load: float, duration_s: float, seed: int) -> list[Work]:
    """The same load from people who know nothing of each other: Poisson processes."""
    draw = random.Random(seed)
    works: list[Work] = []
    for kind in KINDS:
        rate = kind.hz * kind.clients * load
        at = draw.expovariate(rate)
        while at < duration_s:
            works.append(_work(at, kind))
            at += draw.expovariate(rate)
    return works


def _work(at: float, kind: Kind) -> Work:
    return Work(max(at, 0.0), kind.service_class, kind.steps, kind.deadline_s)


class Tally(msgspec.Struct):
    """What became of the jobs of one class. `busy_s` is its part of the calls' time, divided over their rows."""

    jobs: int = 0
    in_time: int = 0
    answered: int = 0
    """Done, or shed or rejected with a reason."""
    busy_s: float = 0.0

    def add(self, other: "Tally") -> None:
        self.jobs += other.jobs
        self.in_time += other.in_time
        self.answered += other.answered
        self.busy_s += other.busy_s


def missed(tallies: Mapping[str, Tally], *names: str) -> float:
    """The part of these kinds' jobs that was not done in time; of all, without a name."""
    chosen = [tally for name, tally in tallies.items() if not names or name in names]
    return 1 - sum(tally.in_time for tally in chosen) / sum(tally.jobs for tally in chosen)


class Served(msgspec.Struct, frozen=True):
    """One load, served to the last job."""

    tallies: dict[str, Tally]
    record: Record

    def missed(self, *names: str) -> float:
        return missed(self.tallies, *names)

    @property
    def unanswered(self) -> int:
        return sum(tally.jobs - tally.answered for tally in self.tallies.values())


def served(scheduler: Scheduler, works: Sequence[Work]) -> Served:
    record = SimulatedEngine(scheduler).run(works)
    names = {kind.service_class: kind.name for kind in KINDS}
    tallies = {kind.name: Tally() for kind in KINDS}
    for work in works:
        tallies[names[work.service_class]].jobs += 1
    for end in record.ends:
        tally = tallies[names[end.work.service_class]]
        tally.in_time += end.in_time
        tally.answered += end.how == "done" or bool(end.why)
    for call in record.calls:
        for work in call.works:
            tallies[names[work.service_class]].busy_s += call.took_s / len(call.works)
    return Served(tallies, record)
