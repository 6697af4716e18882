"""The scheduler of whole requests: those with one batch key begin together and run to their end before others begin."""

from collections.abc import Mapping, Sequence
from math import inf

from engines.diffusion.scheduling import Decision, Member, Shed
from engines.diffusion.scheduling.batches import together
from engines.diffusion.scheduling.costs import CostModel
from engines.diffusion.scheduling.roster import Group, Roster


class Waves:
    """For models whose jobs gain nothing from company that comes later. A wave waits for more of its key until it is full, until
    its first has waited `window_s`, until nobody has come for `stable_s`, or until waiting longer would make somebody late. A key
    that waits holds up no other. Which wave begins is decided as in `Steps`.
    """

    def __init__(
        self,
        limit: int,
        window_s: float,
        stable_s: float,
        reserved: Mapping[str, float] | None = None,
        costs: CostModel | None = None,
    ) -> None:
        self._roster = Roster(limit, reserved, costs)
        self._window_s = window_s
        self._stable_s = stable_s
        self._calls_had: dict[Member, int] = {}
        self._chosen_at = 0.0

    def enter(self, member: Member, now: float) -> Shed | None:
        return self._roster.enter(member, now)

    def leave(self, member: Member) -> None:
        self._roster.leave(member)
        self._calls_had.pop(member, None)

    def choose(self, now: float) -> Decision:
        self._chosen_at = now
        shed, groups = self._roster.groups(now)
        for member, _ in shed:
            self._calls_had.pop(member, None)
        if self._calls_had:
            return Decision(tuple(shed), self._under_way(), None)
        look_at = inf
        for group in groups:
            begins_at = self._begins_at(group)
            if begins_at <= now:
                wave = together(group.members, group.curve, self._roster.limit, now, to_the_end=True)
                self._calls_had = dict.fromkeys(wave, 0)
                return Decision(tuple(shed), wave, None)
            look_at = min(look_at, begins_at)
        return Decision(tuple(shed), (), look_at if groups else None)

    def ran(self, run: tuple[Member, ...], took_s: float) -> None:
        self._roster.ran(run, took_s, self._chosen_at + took_s)
        for member in run:
            if member in self._calls_had:
                self._calls_had[member] += 1

    def _under_way(self) -> tuple[Member, ...]:
        """Whoever has had fewest calls, and those whose next one is of the same key: so a wave whose keys part comes together
        again."""
        order = sorted(self._calls_had, key=self._calls_had.__getitem__)
        return _fitting([member for member in order if member.key == order[0].key], self._roster.limit)

    def _begins_at(self, group: Group) -> float:
        if group.rows >= self._roster.limit:
            return -inf
        came = [self._roster.waits_since(member) for member in group.members]
        call_s = group.curve.of(group.rows)
        latest = min(m.deadline - (m.calls_left + 1) * call_s if m.deadline is not None else inf for m in group.members)
        return min(min(came) + self._window_s, max(came) + self._stable_s, latest)


def _fitting(members: Sequence[Member], limit: int) -> tuple[Member, ...]:
    run: list[Member] = []
    rows = 0
    for member in members:
        if not run or rows + member.rows <= limit:
            run.append(member)
            rows += member.rows
    return tuple(run)
