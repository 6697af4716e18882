"""Which jobs share the next call of a DIFFUSION engine: the contract between its schedulers and whoever runs them, an engine or a
simulation. No clock, no thread and no tensor here: times are given, in seconds."""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import NamedTuple, Protocol


@dataclass(slots=True, eq=False)
class Member:
    """One job as its scheduler sees it. `key`, `rows`, `calls_left` and `prepares` are those of its next call: whoever runs the
    calls sets them anew before each `choose`. A key is hashed once for every member and `choose`: let that be cheap.

    `service_class` has its share; `released_at` is when the job was there, `deadline` when it should be done (None: whenever).
    """

    service_class: str
    released_at: float
    deadline: float | None
    key: Hashable
    rows: int
    calls_left: int
    prepares: bool = False
    """The next call comes before those that others may share with it."""
    begun: bool = False
    """It has had a call. The scheduler notes it, in `ran`."""


class Shed(NamedTuple):
    """The member is out, and whoever asked for it is to be told `why`, a sentence with the numbers."""

    member: Member
    why: str


class Decision(NamedTuple):
    """`shed` are out. `run` share the next call; when empty, `look_at` says when to ask again at the latest (None: when something
    changes)."""

    shed: tuple[Shed, ...]
    run: tuple[Member, ...]
    look_at: float | None


class Scheduler(Protocol):
    def enter(self, member: Member, now: float) -> Shed | None:
        """Not None: it cannot be done in time, and is not taken."""
        ...

    def leave(self, member: Member) -> None:
        """It is done, or gives up. One that is not there is ignored."""
        ...

    def choose(self, now: float) -> Decision: ...

    def ran(self, run: tuple[Member, ...], took_s: float) -> None:
        """What was chosen last has run, still with the `key` and `rows` that it was chosen with; so long it took."""
        ...
