"""What was learned of a pipeline when it was tried."""

from dataclasses import dataclass, field
from typing import TypeAlias

from engines.diffusion.pipelines.padding import Filled, Masked, Padding
from engines.diffusion.pipelines.roles import Path, Role, Roles

Site: TypeAlias = tuple[str, str]
"""The pipeline's name of a network and the method called: `("vae", "decode")`."""


@dataclass(slots=True, eq=False)
class Traits:
    """Of a site. `single`: its calls are made one at a time, because `why`. Arguments in `padding` need not be equally long."""

    roles: Roles = field(default_factory=dict[Path, Role])
    padding: Padding = field(default_factory=dict[Path, Filled | Masked])
    single: bool = True
    why: str = "it was not called when the pipeline was tried"

    def agrees_with(self, other: "Traits") -> bool:
        common = self.roles.keys() & other.roles.keys()
        is_alike = (self.single, self.padding) == (other.single, other.padding)
        return is_alike and all(self.roles[path] is other.roles[path] for path in common)


@dataclass(slots=True, eq=False)
class Habits:
    """How many calls a run makes before its steps, in each of them, and after them; an estimate for runs with other arguments.

    `denoisers` are the networks called in each step. `not_resumed` is why a run cannot be gone on with by another one, as new
    prompts want, and `not_shown` why another one cannot show how far it is; empty when it can. `required` are arguments without
    which it raises."""

    head: int = 2
    per_step: int = 1
    tail: int = 1
    denoisers: frozenset[str] = frozenset()
    not_resumed: str = "the pipeline was not tried"
    not_shown: str = "the pipeline was not tried"
    required: frozenset[str] = frozenset()


@dataclass(slots=True, eq=False)
class Known:
    traits: dict[Site, Traits] = field(default_factory=dict[Site, Traits])
    habits: Habits = field(default_factory=Habits)


def share(known: Known, others: Known) -> None:
    """Of another pipeline on the same networks: from now on calls of both share forwards, where the same was learned of them."""
    for site, traits in others.traits.items():
        own = known.traits.get(site)
        if own is not None and own.agrees_with(traits):
            own.roles.update(traits.roles)
            others.traits[site] = own
