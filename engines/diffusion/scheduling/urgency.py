"""How long a job may still wait, in seconds: its slack. And who goes first of those that have all the time in the world."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from math import inf

from engines.diffusion.scheduling import Member

PATIENCE_S = {"control": 0.1, "interactive": 1.0, "batch": 10.0}
"""A job without a deadline wants to be begun so long after it was there, and to go on so long after its last call."""
LONGEST_PATIENCE_S = 10.0
UNHURRIED_S = 0.1
"""The slack of such a job falls no lower: a deadline that is near goes before it."""


def slack(member: Member, waits_since: float, eldest: float, call_s: float, now: float) -> float:
    """With a deadline: what is left when its calls to come take `call_s` each. `waits_since` is its last call, or its arrival,
    `eldest` the arrival of the first of its class without a deadline."""
    if member.deadline is not None:
        return member.deadline - now - member.calls_left * call_s
    patience = PATIENCE_S.get(member.service_class, LONGEST_PATIENCE_S)
    waited = now - waits_since
    if waited > patience:
        return patience - waited
    return max(eldest + patience - now, UNHURRIED_S)


@dataclass(slots=True)
class Unhurried:
    """Those without a deadline. Among themselves who came early and has little to do goes first, so that nothing that is nearly
    done waits for what has just begun, and nothing large waits longer for ever smaller ones than it takes itself.

    While there is room in a call of theirs, a newcomer's preparations go before their steps: so it shares these from then on.
    """

    limit: int
    eldest: dict[str, float] = field(default_factory=dict[str, float])
    """By class, when the first of them was there: towards deadlines, each is as urgent as that one."""
    rows: int = 0
    """Of those whose preparations are done."""

    @classmethod
    def among(cls, members: Iterable[Member], limit: int) -> "Unhurried":
        found = cls(limit)
        for member in members:
            if member.deadline is None:
                eldest = found.eldest.get(member.service_class, inf)
                found.eldest[member.service_class] = min(eldest, member.released_at)
                found.rows += 0 if member.prepares or not member.begun else member.rows
        return found

    def turn(self, member: Member, call_s: float) -> float:
        """Least goes first; 0 for those with a deadline."""
        if member.deadline is not None:
            return 0.0
        if member.prepares:
            return -inf if self.rows < self.limit else inf
        return member.released_at + member.calls_left * call_s
