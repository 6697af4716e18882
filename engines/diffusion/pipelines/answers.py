"""What answers a job's calls in the network's place: what it has encoded before, and, where the deployment wants it, the output
of an earlier step that has hardly become wrong."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import cast

import torch

from engines.diffusion.pipelines.calls import Call, contents
from engines.diffusion.pipelines.roles import Path, Role, Roles, parts
from engines.diffusion.pipelines.traits import Known
from engines.models.options import StepCacheOptions


@dataclass(slots=True, eq=False)
class Reused:
    """Of one of the calls that a step makes: what the network put out when it last computed, and how far its input has gone
    since.

    Method: the accumulated relative change of the input as the measure of staleness, after Liu et al., Timestep Embedding Tells:
    It's Time to Cache for Video Diffusion Model, 2024; without their polynomial, which needs fitting to each model.
    """

    output: object
    input: torch.Tensor
    gone: float = 0.0
    in_a_row: int = 0


@dataclass(slots=True, eq=False)
class Answered:
    """Of one job."""

    known: Known
    step_cache: StepCacheOptions | None = None
    computed_calls: int = 0
    reused_calls: int = 0
    _encoded: dict[Hashable, object] = field(default_factory=dict[Hashable, object])
    _steps: dict[tuple[str, str], Reused] = field(default_factory=dict[tuple[str, str], Reused])

    def answer(self, call: Call) -> object | None:
        if self._denoises(call):
            return self._answer_step(call)
        return self._encoded.get((call.site, contents(call.arguments))) if call.prepares else None

    def computed(self, call: Call, output: object) -> None:
        if self._denoises(call):
            self.computed_calls += 1
            latents = self._latents(call)
            if self.step_cache is not None and latents is not None:
                self._steps[call.site[0], call.slot] = Reused(output, latents)
        elif call.prepares:
            self._encoded[call.site, contents(call.arguments)] = output

    def forget_steps(self) -> None:
        self._steps.clear()

    def _denoises(self, call: Call) -> bool:
        return call.site[0] in self.known.habits.denoisers

    def _answer_step(self, call: Call) -> object | None:
        kept, settings, latents = self._steps.get((call.site[0], call.slot)), self.step_cache, self._latents(call)
        if settings is None or kept is None or latents is None or latents.shape != kept.input.shape:
            return None
        kept.gone += float((latents - kept.input).abs().mean() / kept.input.abs().mean().clamp_min(1e-8))
        kept.input = latents
        if call.step < settings.first_steps or kept.gone >= settings.threshold or kept.in_a_row >= settings.most_in_a_row:
            return None
        kept.in_a_row += 1
        self.reused_calls += 1
        return kept.output

    def _latents(self, call: Call) -> torch.Tensor | None:
        return _first_rows((), call.arguments, call.traits.roles)


def _first_rows(path: Path, value: object, roles: Roles) -> torch.Tensor | None:
    """The first argument with rows: what is denoised."""
    if roles.get(path) is Role.ROWS:
        if isinstance(value, torch.Tensor):
            return value.float()
        elements = cast("list[object]", value)
        tensors = [element for element in elements if isinstance(element, torch.Tensor)]
        return torch.cat([tensor.reshape(-1).float() for tensor in tensors]) if len(tensors) == len(elements) else None
    if isinstance(value, Mapping | tuple | list):
        for key, part in parts(cast("Mapping[str, object]", value)):
            if (found := _first_rows((*path, key), part, roles)) is not None:
                return found
    return None
