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


@dataclass(slots=True, eq=False)
class Habits:
    """How many calls a run makes before its steps, in each of them, and after them; an estimate for runs with other arguments.

    `denoisers` are the networks called in each step. `not_resumed` is why a run cannot be gone on with by another one, as
    previews and new prompts want; empty when it can. `required` are arguments without which it raises."""

    head: int = 2
    per_step: int = 1
    tail: int = 1
    denoisers: frozenset[str] = frozenset()
    not_resumed: str = "the pipeline was not tried"
    required: frozenset[str] = frozenset()


@dataclass(slots=True, eq=False)
class Known:
    traits: dict[Site, Traits] = field(default_factory=dict[Site, Traits])
    habits: Habits = field(default_factory=Habits)
