"""A DIFFUSION engine on simulated time: a real scheduler, stand-ins for calls, a record of what became of whom."""

import time
from collections import deque
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from math import inf
from typing import NamedTuple, TypeAlias

from engines.diffusion.scheduling import Decision, Member, Scheduler

CallTime: TypeAlias = Callable[[Hashable, int], float]
"""Seconds that a call takes, by key and rows."""


def step_s(key: Hashable, rows: int) -> float:
    """The stand-in of the benchmarks, for up to 8 rows."""
    return (4 + 0.5 * rows) / 1000


@dataclass(slots=True, eq=False)
class Work:
    """A job that is there at `at`. `keys` are those of its first calls, the last one repeats. `gives_up_at`: it leaves at the
    first boundary from then on."""

    at: float
    service_class: str
    calls: int
    deadline_s: float | None = None
    keys: tuple[Hashable, ...] = ("a shape",)
    prepares: int = 0
    """Its first calls, that nobody shares the others with it before."""
    rows: int = 1
    gives_up_at: float = inf

    def key(self, calls_had: int) -> Hashable:
        return self.keys[min(calls_had, len(self.keys) - 1)]


class End(NamedTuple):
    """`how` is done, shed, rejected, or gave up."""

    work: Work
    how: str
    at: float
    why: str = ""

    @property
    def in_time(self) -> bool:
        return self.how == "done" and (self.work.deadline_s is None or self.at <= self.work.at + self.work.deadline_s + 1e-9)


class Call(NamedTuple):
    at: float
    works: tuple[Work, ...]
    key: Hashable
    rows: int
    took_s: float


@dataclass(slots=True)
class Record:
    ends: list[End] = field(default_factory=list[End])
    calls: list[Call] = field(default_factory=list[Call])
    now: float = 0.0
    choosing_s: float = 0.0
    """Real time in `choose` and `ran`."""

    def how(self, work: Work) -> str:
        return next(end.how for end in self.ends if end.work is work)


class SimulatedEngine:
    """`limit_calls` ends a run that would go on for ever."""

    def __init__(self, scheduler: Scheduler, call_time: CallTime = step_s, limit_calls: int = 1_000_000) -> None:
        self._scheduler = scheduler
        self._call_time = call_time
        self._limit_calls = limit_calls
        self._there: dict[Member, Work] = {}
        self._leaving: set[Member] = set()
        self.record = Record()

    def run(self, works: Iterable[Work]) -> Record:
        """Until the last job has come to an end, or the scheduler wants to do nothing more."""
        coming = deque(sorted(works, key=_at))
        record = self.record
        while (self._there or coming) and len(record.calls) < self._limit_calls:
            while coming and coming[0].at <= record.now:
                self._enter(coming.popleft())
            self._let_go()
            decision = self._chosen()
            if decision.run:
                self._call(decision.run)
                continue
            changes = [work.gives_up_at for work in self._there.values() if work.gives_up_at > record.now]
            changes += [coming[0].at] if coming else []
            changes += [] if decision.look_at is None else [decision.look_at]
            record.now = min(changes, default=inf)
            if record.now == inf:
                break
        return record

    def _enter(self, work: Work) -> None:
        now = self.record.now
        deadline = None if work.deadline_s is None else work.at + work.deadline_s
        member = Member(work.service_class, work.at, deadline, work.key(0), work.rows, work.calls, work.prepares > 0)
        rejected = self._scheduler.enter(member, now)
        if rejected is not None:
            assert rejected.member is member
            self.record.ends.append(End(work, "rejected", now, rejected.why))
            return
        self._there[member] = work
        if work.gives_up_at < inf:
            self._leaving.add(member)

    def _let_go(self) -> None:
        for member in [member for member in self._leaving if self._there[member].gives_up_at <= self.record.now]:
            self._end(member, "gave up")

    def _chosen(self) -> Decision:
        began = time.perf_counter()
        decision = self._scheduler.choose(self.record.now)
        self.record.choosing_s += time.perf_counter() - began
        for member, why in decision.shed:
            self._end(member, "shed", why)
        return decision

    def _call(self, run: tuple[Member, ...]) -> None:
        """Raises KeyError for a member that has ended already."""
        record = self.record
        key, rows = run[0].key, sum(member.rows for member in run)
        took_s = self._call_time(key, rows)
        record.calls.append(Call(record.now, tuple(self._there[member] for member in run), key, rows, took_s))
        record.now += took_s
        began = time.perf_counter()
        self._scheduler.ran(run, took_s)
        record.choosing_s += time.perf_counter() - began
        for member in run:
            work = self._there[member]
            member.calls_left -= 1
            calls_had = work.calls - member.calls_left
            member.key, member.prepares = work.key(calls_had), calls_had < work.prepares
            if member.calls_left == 0:
                self._end(member, "done")

    def _end(self, member: Member, how: str, why: str = "") -> None:
        self.record.ends.append(End(self._there.pop(member), how, self.record.now, why))
        self._leaving.discard(member)
        self._scheduler.leave(member)


def _at(work: Work) -> float:
    return work.at
