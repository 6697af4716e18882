"""What calibration asks of a kind of session: run so many of them, and say whether each still went as it should."""

from collections.abc import Mapping
from typing import Protocol

import msgspec

Bars = Mapping[str, float]
"""Figure → the most that it may be."""


class Verdict(msgspec.Struct, frozen=True):
    """`broken` says which bars did not hold, for people."""

    figures: Mapping[str, float]
    broken: tuple[str, ...]

    @property
    def held(self) -> bool:
        return not self.broken


class ProbeFailed(Exception):
    """Nothing could be measured; the message is one sentence."""


class Probe(Protocol):
    """A kind of session adds its own in realtime/commands/calibrate.py."""

    @property
    def kind(self) -> str: ...

    async def run(self, sessions: int) -> Verdict:
        """So many at once, for as long as it takes to judge them. Raises ProbeFailed."""
        ...


def judged(figures: Mapping[str, float], bars: Bars) -> Verdict:
    """Raises KeyError for a bar without a figure: a bug of the probe."""
    broken = tuple(f"{name} {figures[name]:g}, at most {most:g}" for name, most in bars.items() if figures[name] > most)
    return Verdict(figures, broken)
