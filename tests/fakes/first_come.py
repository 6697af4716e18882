"""A scheduler without policy: who came first, and whoever else has its key, up to `most_rows`. What it is told to shed goes."""

from engines.diffusion.scheduling import Decision, Member, Shed


class FirstCome:
    """`refuses` is why whoever enters with this key is not taken; `sheds` why whoever is there with this key is out. `held` keeps
    everybody waiting until then, in seconds of the engine's clock."""

    def __init__(self, most_rows: int = 8) -> None:
        self.most_rows = most_rows
        self.refuses: dict[object, str] = {}
        self.sheds: dict[object, str] = {}
        self.held = 0.0
        self.members: list[Member] = []
        self.ran_s: list[float] = []

    def enter(self, member: Member, now: float) -> Shed | None:
        assert member not in self.members
        if member.key in self.refuses:
            return Shed(member, self.refuses[member.key])
        self.members.append(member)
        return None

    def leave(self, member: Member) -> None:
        if member in self.members:
            self.members.remove(member)

    def choose(self, now: float) -> Decision:
        shed = tuple(Shed(member, self.sheds[member.key]) for member in self.members if member.key in self.sheds)
        for member, _ in shed:
            self.members.remove(member)
        if now < self.held:
            return Decision(shed, (), self.held)
        run: list[Member] = []
        for member in self.members:
            if member.key == self.members[0].key and sum(one.rows for one in (*run, member)) <= self.most_rows:
                run.append(member)
        return Decision(shed, tuple(run), None)

    def ran(self, run: tuple[Member, ...], took_s: float) -> None:
        assert all(member in self.members for member in run)
        self.ran_s.append(took_s)
