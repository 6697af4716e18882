"""The ways to serve what a job is given: the folder's own pipeline, and those of the library that edit pictures with the same
networks. Jobs of all of them share calls."""

import logging
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace

from engines.diffusion.pipelines.edits import editors
from engines.diffusion.pipelines.learning import try_out
from engines.diffusion.pipelines.served import Served
from engines.diffusion.pipelines.taken import Taken
from engines.diffusion.pipelines.traits import share
from engines.diffusion.pipelines.trial import trials
from engines.models.options import DiffusersOptions
from engines.worker.foreign import attempt

logger = logging.getLogger(__name__)


@dataclass(slots=True, eq=False)
class Ways:
    own: Served
    _editors: list[Served] = field(default_factory=list[Served])

    def try_out(self, options: DiffusersOptions) -> None:
        """Raises what its own pipeline raises when it is tried; an editor that raises is left out, and said so."""
        try_out(self.own, trials(self.own.takes, options))
        for editor in editors(self.own.pipeline):
            way = Served(editor, options.step_cache)
            failure = attempt(try_out, way, trials(way.takes, options))
            if isinstance(failure, Exception):
                logger.warning("%s is not served, since it fails with these networks (%s)", type(editor).__name__, failure)
                continue
            share(self.own.known, way.known)
            self._editors.append(way)

    @property
    def takes(self) -> Taken:
        """What one of them takes."""
        names = frozenset[str]().union(*(way.takes.names for way in self._all))
        return replace(self.own.takes, names=names)

    def of(self, given: AbstractSet[str]) -> Served:
        """The first that needs nothing but `given` and takes all of it; else one whose refusal says what is wrong."""
        taking = [way for way in self._all if given <= way.takes.names]
        return next((way for way in taking if way.known.habits.required <= given), taking[0] if taking else self.own)

    @property
    def _all(self) -> list[Served]:
        return [self.own, *self._editors]
