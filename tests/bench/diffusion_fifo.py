"""What `Steps` is measured against: the same batch limit, costs learnt likewise, and and what would be late even alone is shed;
but in the order of arrival."""

from engines.diffusion.scheduling import Decision, Member, Shed
from engines.diffusion.scheduling.costs import CostModel


class StepFifo:
    """Before every step, the oldest share it."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.costs = CostModel()
        self.there: dict[Member, None] = {}

    def enter(self, member: Member, now: float) -> Shed | None:
        if self._late(member, now):
            return Shed(member, "too late from the beginning")
        self.there[member] = None
        return None

    def leave(self, member: Member) -> None:
        self.there.pop(member, None)

    def choose(self, now: float) -> Decision:
        shed = tuple(Shed(member, "too late, even alone") for member in self.there if self._late(member, now))
        for member, _ in shed:
            self.leave(member)
        return Decision(shed, self.next_run(), None)

    def next_run(self) -> tuple[Member, ...]:
        return tuple(self.there)[: self.limit]

    def ran(self, run: tuple[Member, ...], took_s: float) -> None:
        self.costs.observe(run[0].key, sum(member.rows for member in run), took_s)
        for member in run:
            member.begun = True

    def _late(self, member: Member, now: float) -> bool:
        alone_s = self.costs.curve(member.key).surely(member.rows)
        return member.deadline is not None and now + member.calls_left * alone_s > member.deadline


class RequestFifo(StepFifo):
    """The oldest run together until the last of them is done; who comes meanwhile waits."""

    def next_run(self) -> tuple[Member, ...]:
        return tuple(member for member in self.there if member.begun) or super().next_run()
