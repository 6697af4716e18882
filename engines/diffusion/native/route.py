"""The way of one row from noise to clean values: which level comes next, and what a prediction moves it to.

In both parametrisations the direction at a level is (x - clean) / level, so one rule moves the rows of either.
"""

from typing import Literal, NamedTuple, TypeAlias

import torch
from torch import Tensor

from engines.diffusion.native.levels import Converted, Levels, Parametrisation, converted

Solver: TypeAlias = Literal["euler", "heun"]


class Half(NamedTuple):
    """Of a step of Heun, between its two calls: where it began, and the direction found there."""

    x: Tensor
    direction: Tensor


class Place(NamedTuple):
    """Where a row is. Its tensors are never written: the next place has new ones."""

    x: Tensor
    step: int
    half: Half | None = None


class Route(NamedTuple):
    """`levels` fall to 0 at the last, so there is one step less than levels."""

    parametrisation: Parametrisation
    levels: tuple[float, ...]
    takes: Parametrisation
    solver: Solver = "euler"

    @classmethod
    def over(cls, levels: Levels, steps: int, takes: Parametrisation, solver: Solver) -> "Route":
        return cls(levels.parametrisation, levels.spaced(steps, takes), takes, solver)

    @property
    def steps(self) -> int:
        return len(self.levels) - 1

    def begin(self, noise: Tensor) -> Place:
        """`noise` is standard normal."""
        return Place(noise * self.levels[0], 0)

    def calls_left(self, place: Place) -> int:
        left = self.steps - place.step
        if self.solver == "euler" or left == 0:
            return left
        return 2 * left - 1 - (place.half is not None)

    def asked(self, place: Place) -> Converted:
        """At what level the network is to be asked, and what x is to be multiplied by, in the network's parametrisation."""
        level = self.levels[place.step + (place.half is not None)]
        return converted(level, self.parametrisation, self.takes)

    def after(self, place: Place, clean: Tensor) -> Place:
        """Where the network's prediction leads."""
        level, following = self.levels[place.step], self.levels[place.step + 1]
        if place.half is not None:
            begun = place.half
            direction = (begun.direction + (place.x - clean) / following) / 2
            return Place(begun.x + direction * (following - level), place.step + 1)
        # The same as x + (x - clean) / level · (following - level), and exactly the clean values at the end.
        moved = torch.lerp(clean, place.x, following / level)
        if self.solver == "heun" and following > 0:
            return Place(moved, place.step, Half(place.x, (place.x - clean) / level))
        return Place(moved, place.step + 1)
