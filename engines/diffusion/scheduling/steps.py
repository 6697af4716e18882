"""The scheduler that decides anew before every call: members join, leave and overtake between any two."""

from collections.abc import Mapping

from engines.diffusion.scheduling import Decision, Member, Shed
from engines.diffusion.scheduling.batches import together
from engines.diffusion.scheduling.costs import CostModel
from engines.diffusion.scheduling.roster import Roster


class Steps:
    """Whoever has least slack runs next, of a class that has had less than its share before all others; who can share its call
    joins it. `limit` is in rows; `reserved` are the classes' shares of the engine's busy time (shares.RESERVED)."""

    def __init__(self, limit: int, reserved: Mapping[str, float] | None = None, costs: CostModel | None = None) -> None:
        self._roster = Roster(limit, reserved, costs)
        self._chosen_at = 0.0

    def enter(self, member: Member, now: float) -> Shed | None:
        return self._roster.enter(member, now)

    def leave(self, member: Member) -> None:
        self._roster.leave(member)

    def choose(self, now: float) -> Decision:
        self._chosen_at = now
        shed, groups = self._roster.groups(now)
        run = ()
        if groups:
            first = groups[0]
            run = together(first.members, first.curve, self._roster.limit, now, to_the_end=False)
        return Decision(tuple(shed), run, None)

    def ran(self, run: tuple[Member, ...], took_s: float) -> None:
        self._roster.ran(run, took_s, self._chosen_at + took_s)
