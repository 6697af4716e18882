"""A playout of the server's side that plays nothing: a test says what was heard when it is cleared."""

import math
from collections.abc import Sequence

from sessions.voice.playout import Heard, Playing


class FakePlayout:
    def __init__(self) -> None:
        self.told: list[str] = []
        self.unfinished: tuple[Heard, ...] = ()
        """What the next `clear` finds in it."""
        self.remaining_ms = math.inf
        """Of what is unfinished."""
        self.waits = True
        self.played_levels: list[float] = []

    @property
    def has_floor(self) -> bool:
        return bool(self.unfinished)

    def playing(self) -> Playing | None:
        if not self.unfinished:
            return None
        return Playing(self.unfinished[0].item_id, self.unfinished[0].audio_ms, self.remaining_ms)

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
