"""A pipeline is tried before it serves: what of its networks' calls belongs to one picture, whether merged calls give what single
ones give, how many calls a run makes, and whether a run can be gone on with."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from engines.diffusion.pipelines.calls import Call, keyed
from engines.diffusion.pipelines.job import PipelineJob, Shown
from engines.diffusion.pipelines.padding import learn_padding
from engines.diffusion.pipelines.pixels import values
from engines.diffusion.pipelines.roles import learn, parts
from engines.diffusion.pipelines.served import Served
from engines.diffusion.pipelines.traits import Habits, Known, Site, Traits
from engines.diffusion.pipelines.trial import TRIED_STEPS, Trial
from engines.worker.foreign import attempt

logger = logging.getLogger(__name__)
FIRST, SECOND, LONGER = "a", "b", "a b c d"
"""Prompts. The first two are equally long to any tokenizer."""
TOLERANCE = {torch.float32: 1e-4, torch.float64: 1e-6}
COARSE_TOLERANCE = 5e-2
"""Of half precision, of the largest value."""


@dataclass(slots=True, frozen=True)
class Made:
    call: Call
    output: object


def try_out(served: Served, trials: Sequence[Trial]) -> None:
    """Fills `served.known`, by the first of `trials` that the pipeline can do. What cannot be learned is served one call at a
    time, and said so. Raises what the pipeline raises in the last one."""
    with torch.no_grad():
        for trial in trials[:-1]:
            failure = attempt(_learn, served, trial)
            if not isinstance(failure, Exception):
                break
            logger.info("the pipeline could not be tried with a small picture (%s); now with its own size", failure)
        else:
            _learn(served, trials[-1])
    for (network, method), traits in served.known.traits.items():
        if traits.single:
            logger.warning("calls of %s.%s are made one at a time: %s", network, method, traits.why)


def _learn(served: Served, trial: Trial) -> None:
    served.known = known = Known()
    arguments = trial([FIRST], 1)
    one = _solo(served, arguments)
    two = _of_two(served, trial, one)
    if two is None:
        logger.warning("calls of this pipeline are made one at a time: it does not take two prompts in one call")
    else:
        _learn_roles(known.traits, one, two)
        _prove(served, one, _solo(served, trial([SECOND], 1), seed=1))
        _learn_padding(served, trial, one)
    known.habits = _habits(one)
    known.habits.required = _required(served, arguments)
    known.habits.not_resumed = _why_not_resumed(served, arguments)
    known.habits.not_shown = _why_not_shown(served, arguments)


def _of_two(served: Served, trial: Trial, one: Sequence[Made]) -> list[Made] | None:
    """The same calls for two pictures: with the given ones doubled, or one for both."""
    for copies in (2, 1):
        two = attempt(_solo, served, trial([FIRST, FIRST], copies))
        if not isinstance(two, Exception) and _sites(one) == _sites(two):
            return two
    return None


def _required(served: Served, arguments: Mapping[str, object]) -> frozenset[str]:
    """Those of the pictures given without which it fails."""
    given = arguments.keys() & {"image", "mask_image"}
    without = {name: {other: value for other, value in arguments.items() if other != name} for name in given}
    return frozenset(name for name in given if isinstance(attempt(_solo, served, without[name]), Exception))


def _solo(served: Served, arguments: Mapping[str, object], seed: int = 0) -> list[Made]:
    """The calls of one run, in order, with their outputs."""
    job = served.begin(arguments, seed, steps=TRIED_STEPS)
    made: list[Made] = []
    while job.calls_left:
        call = job.call
        [output] = served.outputs([call])
        made.append(Made(call, output))
        job.take(output)
    return made


def _learn_roles(traits: dict[Site, Traits], one: Sequence[Made], two: Sequence[Made]) -> None:
    for few, many in zip(one, two, strict=True):
        known = traits.setdefault(few.call.site, Traits(single=False, why=""))
        learn(known.roles, (), few.call.arguments, many.call.arguments)
        learn(known.roles, ("output",), few.output, many.output)


def _learn_padding(served: Served, trial: Trial, one: Sequence[Made]) -> None:
    """For networks whose arguments are as long as the prompt, and whose outputs are not. Kept where it is proved."""
    longer = _solo(served, trial([LONGER], 1), seed=1)
    both = attempt(_solo, served, trial([FIRST, LONGER], 2))
    if isinstance(both, Exception) or not _sites(one) == _sites(longer) == _sites(both):
        return
    for site, traits in served.known.traits.items():
        of_site = [made for made in zip(one, longer, both, strict=True) if made[0].call.site == site]
        for short, long, whole in of_site:
            learn_padding(traits.padding, (), short.call.arguments, long.call.arguments, whole.call.arguments)
        pairs = [pair for pair in ((short, long) for short, long, _ in of_site) if _key(pair[0], traits) == _key(pair[1], traits)]
        if traits.padding and (traits.single or not pairs or _fault(served, pairs[0])):
            traits.padding.clear()


def _sites(made: Sequence[Made]) -> list[Site]:
    return [one.call.site for one in made]


def _prove(served: Served, one: Sequence[Made], other: Sequence[Made]) -> None:
    """Of each site some call of the first run is merged with one of the other, at another step where there is one."""
    for site, traits in served.known.traits.items():
        pair = _pair(site, one, other, traits)
        if pair is None:
            traits.single, traits.why = True, "two calls with other prompts are not alike enough to be one"
        elif fault := _fault(served, pair):
            traits.single, traits.why = True, fault


def _pair(site: Site, one: Sequence[Made], other: Sequence[Made], traits: Traits) -> tuple[Made, Made] | None:
    pairs = [
        (first, second)
        for first in one
        for second in other
        if first.call.site == second.call.site == site and _key(first, traits) == _key(second, traits)
    ]
    return max(pairs, key=lambda pair: abs(pair[0].call.step - pair[1].call.step), default=None)


def _key(made: Made, traits: Traits) -> object:
    return keyed(made.call.site, made.call.arguments, traits).key


def _fault(served: Served, pair: tuple[Made, Made]) -> str:
    """Why the two cannot be merged; empty when they can."""
    calls = [_with_rows(made.call, served.known.traits[made.call.site]) for made in pair]
    merged = attempt(served.outputs, calls)
    if isinstance(merged, Exception):
        return f"two at once fail ({merged})"
    for call, output in zip(calls, merged, strict=True):
        [alone] = served.outputs([call])
        if (error := _difference(alone, output)) > 1:
            return f"two at once give something else than each alone, {error:.1f} times what is allowed"
    return ""


def _with_rows(call: Call, traits: Traits) -> Call:
    keys = keyed(call.site, call.arguments, traits)
    return Call(call.site, traits, call.arguments, call.step, call.slot, call.prepares, *keys)


def _difference(alone: object, merged: object) -> float:
    """The largest, in units of what is allowed."""
    if isinstance(alone, torch.Tensor) and isinstance(merged, torch.Tensor):
        if alone.shape != merged.shape:
            return float("inf")
        if alone.numel() == 0 or not alone.is_floating_point():
            return 0.0 if torch.equal(alone, merged) else float("inf")
        allowed = TOLERANCE.get(alone.dtype, COARSE_TOLERANCE) * float(alone.abs().max().clamp_min(1e-3))
        return float((alone - merged).abs().max()) / allowed
    others = dict(parts(merged))
    return max((_difference(part, others.get(key)) for key, part in parts(alone)), default=0.0)


def _habits(made: Sequence[Made]) -> Habits:
    within = [one.call for one in made if one.call.step == 1]
    looped = [one.call for one in made if not one.call.prepares and one.call.step < TRIED_STEPS]
    after = [one.call for one in made if one.call.step >= TRIED_STEPS]
    return Habits(
        head=max(len(made) - TRIED_STEPS * len(within) - len(after), 0),
        per_step=max(len(within), 1),
        tail=len(after),
        denoisers=frozenset(call.site[0] for call in within + looped),
    )


def _why_not_resumed(served: Served, arguments: Mapping[str, object]) -> str:
    """A run that is gone on with after its first step must end as one that was not."""
    plain = _last(served, served.begin(arguments, 0, steps=TRIED_STEPS))
    ended = attempt(_changed_after_one_step, served, served.begin(arguments, 0, steps=TRIED_STEPS))
    return _why_not(plain, ended, "a run of it that another one goes on with ends differently")


def _why_not_shown(served: Served, arguments: Mapping[str, object]) -> str:
    """What a run beside shows after the last step must be the end."""
    plain = _last(served, served.begin(arguments, 0, steps=TRIED_STEPS))
    shown = attempt(_shown_after_the_last_step, served, served.begin(arguments, 0, steps=TRIED_STEPS))
    return _why_not(plain, shown, "what another run of it shows of the last step is not its picture")


def _why_not(plain: NDArray[np.floating], other: NDArray[np.floating] | Exception, complaint: str) -> str:
    if isinstance(other, Exception):
        return f"a run of it cannot be gone on with by another one ({other})"
    error = float(np.abs(plain - other).max())
    return f"{complaint}, by {error:.3f}" if error > COARSE_TOLERANCE / 10 else ""


def _changed_after_one_step(served: Served, job: PipelineJob) -> NDArray[np.floating]:
    while job.step < 1:
        _advance(served, job)
    job.change({})
    return _last(served, job)


def _shown_after_the_last_step(served: Served, job: PipelineJob) -> NDArray[np.floating]:
    shown: list[Shown] = []
    while job.step < TRIED_STEPS:
        _advance(served, job)
    job.show(job.left, job.left.latents)
    while not shown:
        shown = _advance(served, job)
    job.drop()
    return values(shown[0].result)


def _last(served: Served, job: PipelineJob) -> NDArray[np.floating]:
    shown: list[Shown] = []
    while job.calls_left:
        shown = _advance(served, job)
    return values(shown[-1].result)


def _advance(served: Served, job: PipelineJob) -> list[Shown]:
    [shown] = served.advance([job])
    if isinstance(shown, Exception):
        raise shown
    return shown
