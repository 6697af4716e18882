"""A playout of the server's side that plays nothing: a test says what was heard when it is cleared."""

from collections.abc import Sequence

from sessions.playout import Heard


class FakePlayout:
    def __init__(self) -> None:
        self.told: list[str] = []
        self.unfinished: tuple[Heard, ...] = ()
        """What the next `clear` finds in it."""
        self.waits = True
        self.played_levels: list[float] = []

    @property
    def has_floor(self) -> bool:
        return bool(self.unfinished)

    def hold(self) -> None:
        self.told.append("hold")

    def resume(self) -> None:
        self.told.append("resume")

    def clear(self) -> tuple[Heard, ...]:
        self.told.append("clear")
        cleared, self.unfinished = self.unfinished, ()
        return cleared

    def detach(self) -> bool:
        self.told.append("detach")
        return self.waits

    def levels(self) -> Sequence[float]:
        return self.played_levels
