"""Who is there: taken in or rejected, shed when too late, put in order by batch key. What both schedulers have in common."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from engines.diffusion.scheduling import Member, Shed
from engines.diffusion.scheduling.costs import CostModel, Curve
from engines.diffusion.scheduling.reasons import too_late, too_much
from engines.diffusion.scheduling.rooms import Rooms
from engines.diffusion.scheduling.shares import RESERVED, Shares
from engines.diffusion.scheduling.urgency import Unhurried, slack

Rank: TypeAlias = tuple[bool, float, float, int, Member]
"""Least goes first: whether its class has had its share, its slack, its turn among those without a deadline, its place here."""


@dataclass(slots=True)
class Group:
    """Members of one batch key, best rank first. `rows` are those of all together, `curve` what their calls cost."""

    key: Hashable
    curve: Curve
    members: list[Member]
    rows: int = 0
    first: Rank | None = None


class Roster:
    """`limit` is the greatest number of rows in a call; a member with more runs alone."""

    def __init__(self, limit: int, reserved: Mapping[str, float] | None = None, costs: CostModel | None = None) -> None:
        if limit < 1:
            raise ValueError(f"limit: expected at least 1 row, got {limit}")
        self.limit = limit
        self.costs = costs or CostModel()
        self.shares = Shares(RESERVED if reserved is None else reserved)
        self.rooms = Rooms(self.shares.reserved)
        self._waits_since: dict[Member, float] = {}
        self._promised: dict[Member, float] = {}

    def __contains__(self, member: Member) -> bool:
        return member in self._waits_since

    def waits_since(self, member: Member) -> float:
        """Its last call, or its arrival."""
        return self._waits_since[member]

    def enter(self, member: Member, now: float) -> Shed | None:
        """One that comes back, begun, is not asked to make room for others."""
        if not self._waits_since:
            self.rooms.idle()
        shed = None
        if member.deadline is not None:
            left_s = member.deadline - now
            shed = self._too_late(member, self.costs.curve(member.key), left_s)
            if shed is None and not member.begun:
                shed = self._too_much(member, member.deadline, left_s)
        if shed is None:
            self._waits_since[member] = now
        return shed

    def leave(self, member: Member) -> None:
        if self._waits_since.pop(member, None) is None:
            return
        self._promised.pop(member, None)
        if member.begun and member.calls_left <= 1:
            self.rooms.done(member.service_class)

    def groups(self, now: float) -> tuple[list[Shed], list[Group]]:
        """Who is too late is out. The others by key, both the groups and who is in them in order."""
        shed: list[Shed] = []
        by_key: dict[Hashable, Group] = {}
        for member in self._waits_since:
            key = member.key
            group = by_key.get(key)
            if group is None:
                group = by_key[key] = Group(key, self.costs.curve(key), [])
            if member.deadline is not None and (late := self._too_late(member, group.curve, member.deadline - now)):
                shed.append(late)
            else:
                group.members.append(member)
                group.rows += member.rows
        for member, _ in shed:
            del self._waits_since[member]
            promised = self._promised.pop(member, 0.0)
            if member.begun:
                self.rooms.wasted(member.service_class, promised)
        groups = [group for group in by_key.values() if group.members]
        self._put_in_order(groups, now)
        return shed, groups

    def ran(self, run: Sequence[Member], took_s: float, ended: float) -> None:
        rows = sum(member.rows for member in run)
        self.costs.observe(run[0].key, rows, took_s)
        self.shares.ran(run, rows, took_s)
        for member in run:
            member.begun = True
            if member in self._waits_since:
                self._waits_since[member] = ended

    def _put_in_order(self, groups: list[Group], now: float) -> None:
        behind = self.shares.behind()
        unhurried = Unhurried.among(self._waits_since, self.limit)
        place = 0
        for group in groups:
            call_s = group.curve.of(min(group.rows, self.limit))
            ranks: list[Rank] = []
            for member in group.members:
                place += 1
                eldest = unhurried.eldest.get(member.service_class, now)
                urgency = slack(member, self._waits_since[member], eldest, call_s, now)
                turn = unhurried.turn(member, call_s)
                ranks.append((member.service_class not in behind, urgency, turn, place, member))
            ranks.sort()
            group.first = ranks[0]
            group.members = [rank[4] for rank in ranks]
        groups.sort(key=_first)

    def _too_late(self, member: Member, curve: Curve, left_s: float) -> Shed | None:
        """Not even when it runs alone from now on."""
        call_s = curve.surely(member.rows)
        if left_s >= 0 and member.calls_left * call_s <= left_s:
            return None
        if left_s > 0:
            curve.doubt()
        return Shed(member, too_late(member.calls_left, call_s, left_s))

    def _too_much(self, newcomer: Member, deadline: float, left_s: float) -> Shed | None:
        """More of its class is to be done by then than it gets done. One that would be alone is always taken."""
        ahead_s = sum(
            self._work_s(member)
            for member in self._waits_since
            if member.deadline is not None and member.deadline <= deadline and member.service_class == newcomer.service_class
        )
        work_s = ahead_s + self._work_s(newcomer)
        part = 1.0 if self.shares.well_within(newcomer.service_class) else self.rooms.part(newcomer.service_class)
        if not ahead_s or work_s <= part * left_s:
            self._promised[newcomer] = ahead_s / left_s if ahead_s else 0.0
            return None
        return Shed(newcomer, too_much(newcomer.service_class, work_s, part, left_s))

    def _work_s(self, member: Member) -> float:
        """The engine's time that it needs at the best, in a full batch."""
        return member.calls_left * member.rows * self.costs.curve(member.key).usually(self.limit) / self.limit


def _first(group: Group) -> Rank:
    assert group.first is not None
    return group.first
