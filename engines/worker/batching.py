"""Which inputs share the next step of a GENERATION engine. Pure functions over what is ready."""

from collections.abc import Hashable, Sequence
from typing import Generic, NamedTuple, TypeVar

from engines.messages.to_worker import ServiceClass
from engines.worker.spec import BatchSpec

T = TypeVar("T")

LATER_MS = {ServiceClass.CONTROL: 0.0, ServiceClass.INTERACTIVE: 250.0, ServiceClass.BATCH: 2000.0}
"""An input counts as if it were due this much later. So the classes go in order, and none waits for ever."""

EXPRESS_MS = 200.0
"""A request that has not emitted yet counts as if it were due this much earlier: it goes first within its class."""


class Ready(NamedTuple, Generic[T]):
    """The oldest input of one request. Times are in seconds. `since` is when it was pushed, `due` when its output is wanted: at
    once, or when what is out already has been played. `express`: nothing of it is out yet."""

    row: T
    key: Hashable
    since: float
    due: float
    service_class: ServiceClass
    express: bool

    @property
    def rank(self) -> float:
        """Virtual deadline in milliseconds: least goes first."""
        return self.due * 1000 + LATER_MS[self.service_class] - (EXPRESS_MS if self.express else 0.0)


class Choice(NamedTuple, Generic[T]):
    """`rows` to run now; when there are none, `due` says when to look again at the latest (None: when something changes)."""

    rows: list[T]
    due: float | None


def choose(ready: Sequence[Ready[T]], batch: BatchSpec, now: float) -> Choice[T]:
    """The group of equal keys whose first row ranks first, among the groups that need not wait for `batch.min`."""
    groups = _groups(ready)
    for group in groups:
        if _due(group, batch) <= now:
            return Choice([one.row for one in group[: batch.max]], None)
    return Choice([], min((_due(group, batch) for group in groups), default=None))


def _groups(ready: Sequence[Ready[T]]) -> list[list[Ready[T]]]:
    """By key, best rank first, inside and outside."""
    groups: dict[Hashable, list[Ready[T]]] = {}
    for one in sorted(ready, key=lambda one: one.rank):
        groups.setdefault(one.key, []).append(one)
    return list(groups.values())


def _due(group: list[Ready[T]], batch: BatchSpec) -> float:
    """When this group may run: at once, or when its oldest input has waited long enough."""
    oldest = min(one.since for one in group)
    may_run = len(group) >= batch.min or any(one.express for one in group)
    return oldest if may_run else oldest + batch.max_wait_ms / 1000
