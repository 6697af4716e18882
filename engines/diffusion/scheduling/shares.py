"""How much of the engine each class has had lately, and how much of it is reserved for it."""

import math
from collections.abc import Mapping, Sequence

from engines.diffusion.scheduling import Member

MEMORY_S = 1.0
"""Busy seconds after which a call counts for a third of what it did (1/e)."""
RESERVED = {"control": 0.5, "interactive": 0.3, "batch": 0.15}
"""What a deployment that says nothing reserves. A class that needs less leaves the rest to the others."""


WELL_WITHIN = 0.9
"""A class that has had less than so much of its share has been promised too little rather than too much."""


class Shares:
    """Fractions of the engine's busy time: a call's time is divided over its rows. A class with less than its share goes first;
    what no share covers, and what a class leaves, goes by slack alone.

    Raises ValueError for shares that are not positive, or that are more than 1 together.
    """

    def __init__(self, reserved: Mapping[str, float]) -> None:
        for service_class, share in reserved.items():
            if not 0 < share <= 1:
                raise ValueError(f"shares.{service_class}: expected more than 0 and at most 1, got {share:g}")
        if (together := sum(reserved.values())) > 1 + 1e-9:
            raise ValueError(f"shares: expected at most 1 together, got {together:g}")
        self.reserved = dict(reserved)
        self._used = dict.fromkeys(reserved, 0.0)

    def behind(self) -> set[str]:
        """The classes that have had less than their share."""
        used = self._used
        return {service_class for service_class, share in self.reserved.items() if used[service_class] < share}

    def well_within(self, service_class: str) -> bool:
        return self.used(service_class) < WELL_WITHIN * self.reserved.get(service_class, 0.0)

    def used(self, service_class: str) -> float:
        """Its fraction of the last busy seconds."""
        return self._used.get(service_class, 0.0)

    def ran(self, run: Sequence[Member], rows: int, took_s: float) -> None:
        """These shared a call of so many rows."""
        used = self._used
        kept = math.exp(-took_s / MEMORY_S)
        for service_class in used:
            used[service_class] *= kept
        portion = (1 - kept) / rows
        for member in run:
            if member.service_class in used:
                used[member.service_class] += portion * member.rows
