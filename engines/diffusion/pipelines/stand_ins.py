"""Stand-ins: what a job's copy of a pipeline has in the place of the networks and the scheduler.

A stand-in is a shallow copy of the real thing of a subclass of its class, so that whatever a pipeline asks of it (its type,
config, dtype, device, parts) is answered as before; only the calls go elsewhere. Nothing of the real ones is changed."""

import copy
import functools
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from typing import Protocol, TypeVar, cast

import torch

Thing = TypeVar("Thing")
UNSCALED = 1.0


class Caller(Protocol):
    """Whom stand-ins tell."""

    def called(
        self, network: str, method: str, args: tuple[object, ...], kwargs: Mapping[str, object], slot: str | None
    ) -> object:
        """Returns the output."""
        ...

    def stepped(self, scheduler: object, model_output: torch.Tensor, sample: torch.Tensor, outcome: object) -> None:
        """The scheduler has made a step from `sample` to `outcome`."""
        ...

    def skips(self) -> bool:
        """Asked once at each turn of the pipeline's loop: shall it be passed over?"""
        ...


def network(real: torch.nn.Module, name: str, caller: Caller) -> torch.nn.Module:
    """In the place of a network: `encode` and `decode` of one that has both are what is called, else itself."""
    stand_in = _of_class(real, _network_class(type(real)))
    vars(stand_in).update(_stands_in_as=name, _caller=caller, _slot=None)
    return stand_in


@functools.cache
def _network_class(real: type) -> type:
    methods = ("encode", "decode") if hasattr(real, "encode") and hasattr(real, "decode") else ("__call__", "forward")
    overrides: dict[str, object] = {name: _handing_over(real, name) for name in methods}
    if hasattr(real, "cache_context"):
        overrides["cache_context"] = _cache_context
    return _subclass(real, overrides)


def _handing_over(real: type, name: str) -> Callable[..., object]:
    @functools.wraps(cast("Callable[..., object]", vars(real).get(name, getattr(real, name))))
    def method(self: torch.nn.Module, *args: object, **kwargs: object) -> object:
        own = vars(self)
        return cast(Caller, own["_caller"]).called(own["_stands_in_as"], name, args, kwargs, own["_slot"])

    return method


@contextmanager
def _cache_context(self: torch.nn.Module, name: str, **_: object) -> Generator[None]:
    """The library's caches would be shared by all jobs; here the name only tells which of a step's calls follow."""
    vars(self)["_slot"] = name
    try:
        yield
    finally:
        vars(self)["_slot"] = None


def scheduler(real: Thing, caller: Caller) -> Thing:
    """A job's own scheduler, which tells of its steps."""
    return _telling(copy.deepcopy(real), _scheduler_class(type(real)), caller)


def resumed_scheduler(stand_in: Thing, caller: Caller, latents: torch.Tensor | None) -> Thing:
    """As `stand_in` is now, in the middle of its steps, for a run of the pipeline that goes on from there: setting its time steps
    changes nothing, given latents are taken as they are, and a picture that noise is added to first becomes `latents`."""
    own = {name: value for name, value in vars(stand_in).items() if name not in ("_caller", "_latents")}
    clone = object.__new__(type(stand_in))
    vars(clone).update(copy.deepcopy(own), _latents=latents)
    return _telling(clone, _resumed_class(type(stand_in).__mro__[1]), caller)


def _telling(clone: Thing, kind: type, caller: Caller) -> Thing:
    clone.__class__ = kind
    vars(clone)["_caller"] = caller
    return clone


@functools.cache
def _scheduler_class(real: type) -> type:
    return _subclass(real, {"step": _telling_step(real)})


@functools.cache
def _resumed_class(real: type) -> type:
    unchanged = {name: _doing_nothing(real, name) for name in ("set_timesteps", "set_begin_index") if hasattr(real, name)}
    noising = {name: _giving_latents(real, name) for name in ("add_noise", "scale_noise") if hasattr(real, name)}
    noise = property(lambda _: UNSCALED, lambda _self, _value: None)
    return _subclass(real, {"step": _telling_step(real), "init_noise_sigma": noise, **unchanged, **noising})


def _giving_latents(real: type, name: str) -> Callable[..., object]:
    real_method = cast("Callable[..., object]", getattr(real, name))

    @functools.wraps(real_method)
    def method(self: object, sample: torch.Tensor, *args: object, **kwargs: object) -> object:
        latents = cast("torch.Tensor | None", vars(self)["_latents"])
        if latents is None or latents.shape != sample.shape:
            return real_method(self, sample, *args, **kwargs)
        vars(self)["_latents"] = None
        return latents

    return method


def _telling_step(real: type) -> Callable[..., object]:
    real_step = cast("Callable[..., object]", real.step)

    @functools.wraps(real_step)
    def step(
        self: object, model_output: torch.Tensor, timestep: object, sample: torch.Tensor, *args: object, **kwargs: object
    ) -> object:
        outcome = real_step(self, model_output, timestep, sample, *args, **kwargs)
        cast(Caller, vars(self)["_caller"]).stepped(self, model_output, sample, outcome)
        return outcome

    return step


def _doing_nothing(real: type, name: str) -> Callable[..., None]:
    @functools.wraps(cast("Callable[..., object]", getattr(real, name)))
    def method(_self: object, *_args: object, **_kwargs: object) -> None: ...

    return method


def pipeline(real: Thing, caller: Caller) -> Thing:
    """A job's own copy of a pipeline; its components are still the real ones."""
    copied = _of_class(real, _pipeline_class(type(real)))
    vars(copied)["_caller"] = caller
    return copied


@functools.cache
def _pipeline_class(real: type) -> type:
    """It neither moves networks when one job is done, for the others' sake, nor draws a progress bar."""
    return _subclass(
        real,
        {
            "interrupt": property(lambda self: cast(Caller, vars(cast(object, self))["_caller"]).skips()),
            "maybe_free_model_hooks": _stay,
            "_progress_bar_config": {"disable": True},
        },
    )


def _stay(_pipeline: object) -> None: ...


def _of_class(real: Thing, kind: type) -> Thing:
    """A shallow copy that is a `kind`, a subclass of its class."""
    clone = cast(Thing, object.__new__(kind))
    vars(clone).update(vars(real))
    return clone


def _subclass(real: type, overrides: Mapping[str, object]) -> type:
    """Of the same name: pipelines look at it."""
    return type(real.__name__, (real,), {**overrides, "__module__": real.__module__})
