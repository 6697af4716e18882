"""Levels of noise, from pure noise down to none, in either of two parametrisations.

`flow`: x = (1 - t)·clean + t·noise with t in [0, 1] (Lipman et al. 2022, arXiv 2210.02747, with time reversed).
`edm`: x = clean + σ·noise with σ from 0 up (Karras et al. 2022, arXiv 2206.00364).
They are the same noisy values up to a factor: σ = t / (1 - t) and x_edm = x_flow / (1 - t).
"""

from typing import Literal, NamedTuple, TypeAlias

Parametrisation: TypeAlias = Literal["flow", "edm"]

MOST_STEPS = 1_000


class Levels(NamedTuple):
    """How the levels of a job are spaced.

    flow: evenly in time, then drawn towards noise by `shift` (more than 1; Esser et al. 2024, arXiv 2403.03206, equation 23).
    edm: from `sigma_max` to `sigma_min` with exponent `rho` (Karras et al., equation 5).
    """

    parametrisation: Parametrisation
    shift: float = 1.0
    sigma_min: float = 0.002
    sigma_max: float = 80.0
    rho: float = 7.0

    def spaced(self, steps: int, takes: Parametrisation) -> tuple[float, ...]:
        """`steps` falling levels and then 0, in this parametrisation, for a network that takes the other or the same.

        Flow begins at pure noise, which in σ would be infinite: for a network that takes σ it begins at `sigma_max`.
        """
        if self.parametrisation == "edm":
            return (*_karras(steps, self), 0.0)
        most = 1.0 if takes == "flow" else self.sigma_max / (1.0 + self.sigma_max)
        even = (1.0 - step / steps for step in range(steps))
        return (*(most * self.shift * t / (1.0 + (self.shift - 1.0) * t) for t in even), 0.0)


def _karras(steps: int, levels: Levels) -> list[float]:
    first, last = levels.sigma_max ** (1.0 / levels.rho), levels.sigma_min ** (1.0 / levels.rho)
    # The first and the last are given, and not what remains of them after a root and a power.
    inner = [(first + step / (steps - 1) * (last - first)) ** levels.rho for step in range(1, steps - 1)]
    return [levels.sigma_max, *inner, levels.sigma_min][: steps if steps == 1 else None]


class Converted(NamedTuple):
    """A level in another parametrisation, and what noisy values have to be multiplied by to be there."""

    level: float
    scale: float


def converted(level: float, own: Parametrisation, wanted: Parametrisation) -> Converted:
    """Raises ZeroDivisionError for pure noise of flow, which has no σ."""
    if own == wanted:
        return Converted(level, 1.0)
    if own == "flow":
        return Converted(level / (1.0 - level), 1.0 / (1.0 - level))
    return Converted(level / (1.0 + level), 1.0 / (1.0 + level))
