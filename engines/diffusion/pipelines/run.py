"""One run of a pipeline's own `__call__`: it goes on until a network is called, and waits there for the output."""

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol, cast

import torch

from engines.diffusion.pipelines import stand_ins
from engines.diffusion.pipelines.aside import Aside, Finished, leave
from engines.diffusion.pipelines.calls import Call, keyed
from engines.diffusion.pipelines.roles import is_sequence
from engines.diffusion.pipelines.traits import Site, Traits

UNKNOWN = Traits()


class Pipeline(Protocol):
    """What is used of a pipeline of diffusers."""

    @property
    def components(self) -> dict[str, object]: ...

    def __call__(self, **arguments: object) -> object: ...


class Answers(Protocol):
    """What may answer a call in the network's place."""

    def answer(self, call: Call) -> object | None: ...

    def computed(self, call: Call, output: object) -> None: ...


@dataclass(slots=True, eq=False)
class Stepped:
    """What a step left: what the network put out, the latents before, and what the scheduler made of both."""

    scheduler: object
    model_output: torch.Tensor
    sample: torch.Tensor
    outcome: object
    latents: torch.Tensor


@dataclass(slots=True, eq=False)
class Run:
    """`skip` turns of the pipeline's loop are passed over, in a run that goes on from `latents` with the scheduler that another
    one left (`resumes`)."""

    pipeline: Pipeline
    scheduler: object
    traits: Mapping[Site, Traits]
    answers: Answers
    skip: int = 0
    resumes: Stepped | None = None
    latents: torch.Tensor | None = None
    step: int = 0
    turns: int = 0
    calls_in_step: int = 0
    calls_per_step: int = 0
    waits_for: Call | None = None
    stepped_to: Stepped | None = None
    result: object = None
    own: Pipeline | None = None
    _aside: Aside[object] | None = None

    def start(self, arguments: Mapping[str, object]) -> None:
        """Up to the first call, which it then waits for. Raises what the pipeline raises."""
        self.step = self.skip
        self.own = own = self._own_pipeline()
        if self.latents is not None and "latents" in inspect.signature(type(own).__call__).parameters:
            arguments = {**arguments, "latents": self.latents}
        self._aside = Aside(lambda: own(**arguments))
        self._took(self._aside.go_on())

    @property
    def has_stepped(self) -> bool:
        return self.stepped_to is not None

    def go_on(self, output: object) -> None:
        """With the output of the call that it waits for, up to the next call or the end."""
        assert self._aside is not None
        self.waits_for = None
        self._took(self._aside.go_on(output))

    def drop(self) -> None:
        if self._aside is not None:
            self._aside.drop()
        self._let_go()

    @property
    def steps(self) -> int | None:
        """As soon as the pipeline has made up its mind."""
        return cast("int | None", vars(self.own).get("_num_timesteps")) if self.own is not None else None

    def _own_pipeline(self) -> Pipeline:
        own = stand_ins.pipeline(self.pipeline, self)
        for name, component in self.pipeline.components.items():
            if isinstance(component, torch.nn.Module):
                vars(own)[name] = stand_ins.network(component, name, self)
        vars(own)["scheduler"] = (
            stand_ins.scheduler(self.scheduler, self)
            if self.resumes is None
            else stand_ins.resumed_scheduler(self.resumes.scheduler, self, self.latents)
        )
        return own

    def _took(self, left_with: object) -> None:
        if isinstance(left_with, Finished):
            self.result = cast("Finished[object]", left_with).result
            self._let_go()
        else:
            self.waits_for = cast(Call, left_with)

    def _let_go(self) -> None:
        self._aside = self.waits_for = self.own = None

    def called(
        self, network: str, method: str, args: tuple[object, ...], kwargs: Mapping[str, object], slot: str | None
    ) -> object:
        if self.steps == 0:
            raise ValueError("no step is left to be made")
        site = (network, method)
        arguments: dict[str, object] = {"args": args, "kwargs": dict(kwargs)}
        slot = slot or str(self.calls_in_step)
        traits = self.traits.get(site, UNKNOWN)
        call = Call(site, traits, arguments, self.step, slot, self.turns == 0, *keyed(site, arguments, traits))
        self.calls_in_step += 1
        answer = self.answers.answer(call)
        if answer is None:
            answer = leave(call)
            self.answers.computed(call, answer)
        return answer

    def stepped(self, scheduler: object, model_output: torch.Tensor, sample: torch.Tensor, outcome: object) -> None:
        latents = cast("torch.Tensor", outcome[0] if is_sequence(outcome) else vars(outcome)["prev_sample"])
        if self.has_stepped:  # what was called in the first one may have been for all
            self.calls_per_step = self.calls_in_step
        self.stepped_to = Stepped(scheduler, model_output, sample, outcome, latents)
        self.step += 1
        self.calls_in_step = 0

    def skips(self) -> bool:
        self.turns += 1
        return self.turns <= self.skip
