"""A pipeline that jobs share: they begin here, and here their calls are computed."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

import torch

from engines.diffusion.pipelines.answers import Answered
from engines.diffusion.pipelines.calls import Call
from engines.diffusion.pipelines.compared import AnyJob
from engines.diffusion.pipelines.job import PipelineJob, Shown
from engines.diffusion.pipelines.merging import Network, NotSplit, compute
from engines.diffusion.pipelines.run import Pipeline
from engines.diffusion.pipelines.taken import Taken, taken
from engines.diffusion.pipelines.traits import Known
from engines.models.options import StepCacheOptions
from engines.worker.foreign import attempt

logger = logging.getLogger(__name__)


@dataclass(slots=True, eq=False)
class Served:
    """All of it on one thread. `forwards` counts the calls that were made of networks, however many jobs shared them."""

    pipeline: Pipeline
    step_cache: StepCacheOptions | None = None
    known: Known = field(default_factory=Known)
    forwards: int = 0
    takes: Taken = field(init=False)
    _components: dict[str, object] = field(init=False)

    def __post_init__(self) -> None:
        self.takes = taken(self.pipeline)
        self._components = self.pipeline.components

    @property
    def scheduler(self) -> object:
        """The pipeline's own."""
        return self._components["scheduler"]

    def begin(
        self,
        arguments: Mapping[str, object],
        seed: int,
        *,
        steps: int,
        scheduler: object | None = None,
        previews: int = 0,
        is_cached: bool = True,
    ) -> PipelineJob:
        """Up to its first call; with the step cache, where there is one. Raises what the pipeline raises."""
        with torch.no_grad():
            return PipelineJob(
                self.pipeline,
                self.scheduler if scheduler is None else scheduler,
                self.known,
                dict(arguments),
                torch.Generator().manual_seed(seed),
                Answered(self.known, self.step_cache if is_cached else None),
                steps,
                previews,
            )

    def advance(self, jobs: Sequence[AnyJob]) -> list[list[Shown] | Exception]:
        """One call for jobs of equal keys. An outer `no_grad` because the jobs' own end in any order, and each sets the thread's
        mode back to what it was when that job began."""
        with torch.no_grad():
            outputs = self.outputs([job.call for job in jobs])
            return [attempt(job.take, output) for job, output in zip(jobs, outputs, strict=True)]

    def outputs(self, calls: Sequence[Call]) -> list[object]:
        """Raises what the network raises."""
        site, traits = calls[0].site, calls[0].traits
        network = self._network(calls[0])
        self.forwards += 1
        try:
            return compute(network, calls, traits)
        except NotSplit as error:
            traits.single, traits.why = True, str(error)
            logger.warning("the calls of %s.%s are made one at a time: %s", *site, error)
            return [output for call in calls for output in compute(network, [call], traits)]

    def _network(self, call: Call) -> Network:
        component, method = self._components[call.site[0]], call.site[1]
        network = cast(Network, component if method == "__call__" else getattr(component, method))
        return _given_floats(network) if call.site[0] == "vae" and _is_wide(component) else network


def _is_wide(component: object) -> bool:
    """Was it kept in float32, whatever the others are? See loading."""
    return isinstance(component, torch.nn.Module) and next(component.parameters()).dtype == torch.float32


def _given_floats(network: Network) -> Network:
    def call(*args: object, **kwargs: object) -> object:
        return network(*map(_float, args), **{name: _float(value) for name, value in kwargs.items()})

    return call


def _float(value: object) -> object:
    return value.float() if isinstance(value, torch.Tensor) and value.is_floating_point() else value
