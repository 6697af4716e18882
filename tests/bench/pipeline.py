"""What sharing calls makes of a pipeline of diffusers that knows nothing of it, beside the library's own batch.

    tests/run bench pipeline [--short]

Prints one JSON object as its last line. Eight users ask for pictures of 32 × 32 in 20 steps with guidance, one after the other,
the next as soon as one is done, beginning at different times. `batch8_ratio`: their pictures a second over those of the library,
which is given eight prompts at once (medians of alternating turns); `batch1_ratio` over the library's for one at a time.
`max_err`: the largest difference of a value of a picture, from 0 to 1, from the library's, of jobs with all kinds of step counts,
sizes and guidance. `abort_ms`: the longest that dropping a job took, after the call that was running. `rss_slope_mb`: by how much
the resident memory grows in 1,000 requests of which every third is aborted. `cache`: a picture in 50 steps alone, with
step caches of two thresholds: how near it is to the one without (`psnr_db`), the share of the denoiser's calls that were saved
(`calls_saved`), and how many times as fast it was (`speedup`, medians).
"""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import msgspec
import numpy as np
import torch
from numpy.typing import NDArray

from bench.command import chosen, note, reported
from engines.diffusion.pipelines.answers import Answered
from engines.diffusion.pipelines.compared import psnr_db
from engines.diffusion.pipelines.job import PipelineJob
from engines.diffusion.pipelines.served import Served
from engines.diffusion.scheduling import Member
from engines.diffusion.scheduling.steps import Steps
from engines.models.options import DiffusersOptions, StepCacheOptions
from engines.worker.memory import resident_bytes
from fakes import tiny_painters, tiny_pipelines
from fakes.tiny_painters import Request, go_on, known, library, served, together
from fakes.tiny_pipelines import TinyPipeline

USERS = 8
STEPS = 20
GUIDANCE = 4.0
CACHED_STEPS = 50
THRESHOLDS = (0.1, 0.4)
PROMPTS = ("a cat", "a dog on a boat", "a cow", "a house", "a tree", "the sea", "two birds", "rain")
MIXED = tuple(
    Request(PROMPTS[seed], 3 + seed % 4, seed, 1.0 + seed % 3, width=32 + 16 * (seed % 2), joins_after=2 * seed)
    for seed in range(USERS)
)


class Plan(msgspec.Struct, frozen=True):
    """`requests` of each user a turn, `turns` of each side; `aborted` is how many requests the memory is watched over."""

    requests: int
    turns: int
    pipelines: tuple[str, ...]
    watched: int


FULL = Plan(requests=3, turns=3, pipelines=("stable_diffusion", "flux", "qwen_image", "z_image", "wan"), watched=1000)
SHORT = Plan(requests=1, turns=1, pipelines=("stable_diffusion", "flux"), watched=150)


async def measure(plan: Plan) -> dict[str, Any]:
    return throughput(plan) | {"max_err": max_err(plan)} | memory(plan) | {"cache": caches(plan)}


def throughput(plan: Plan) -> dict[str, float]:
    pipeline = served(heavy)
    ours, eight, one = list[float](), list[float](), list[float]()
    for turn in range(plan.turns):
        ours.append(pictures_a_second(lambda: users(pipeline, plan.requests), USERS * plan.requests))
        eight.append(pictures_a_second(lambda: alone(USERS), USERS))
        one.append(pictures_a_second(lambda: alone(1), 1))
        note(f"turn {turn}: {ours[-1]:.2f} pictures/s, the library {eight[-1]:.2f} in batches of 8, {one[-1]:.2f} one by one")
    return {"batch8_ratio": round(median(ours) / median(eight), 3), "batch1_ratio": round(median(ours) / median(one), 3)}


def heavy() -> TinyPipeline:
    """Heavy enough that what is measured is its UNet, as in any real one."""
    return tiny_pipelines.stable_diffusion(channels=(64, 128))


def pictures_a_second(work: Callable[[], object], pictures: int) -> float:
    began = time.perf_counter()
    work()
    return pictures / (time.perf_counter() - began)


def users(pipeline: Served, requests: int) -> None:
    """The scheduler of the engine chooses who shares the next call; who is done asks again at once."""
    scheduler = Steps(USERS)
    left = dict.fromkeys(range(USERS), requests)
    there: dict[Member, tuple[int, PipelineJob]] = {}
    coming = list(range(USERS))
    while there or coming:
        if coming:
            user = coming.pop(0)
            job = Request(PROMPTS[user], STEPS, user, GUIDANCE).begin(pipeline)
            member = Member("batch", time.monotonic(), None, job.key, job.rows, job.calls_left, job.prepares)
            there[member] = user, job
            assert scheduler.enter(member, member.released_at) is None
        for member in shared_call(pipeline, scheduler, there):
            user, _ = there.pop(member)
            scheduler.leave(member)
            left[user] -= 1
            coming += [user] if left[user] else []


def shared_call(pipeline: Served, scheduler: Steps, there: Mapping[Member, tuple[int, PipelineJob]]) -> list[Member]:
    """Those that are done with it."""
    began = time.monotonic()
    run = scheduler.choose(began).run
    answers = pipeline.advance([there[member][1] for member in run])
    scheduler.ran(run, time.monotonic() - began)
    done: list[Member] = []
    for member, answer in zip(run, answers, strict=True):
        if isinstance(answer, Exception):
            raise answer
        job = there[member][1]
        member.key, member.rows, member.calls_left, member.prepares = job.key, job.rows, job.calls_left, job.prepares
        done += [] if job.calls_left else [member]
    return done


def alone(pictures: int) -> None:
    """The library, with so many prompts in one call."""
    library(heavy)(
        prompt=list(PROMPTS[:pictures]),
        num_inference_steps=STEPS,
        guidance_scale=GUIDANCE,
        width=32,
        height=32,
        output_type="np",
        generator=[torch.Generator().manual_seed(seed) for seed in range(pictures)],
    )


def max_err(plan: Plan) -> float:
    errors: list[float] = []
    for name in plan.pipelines:
        pipeline, make = known(name), tiny_pipelines.BY_NAME[name]
        got = together(pipeline, MIXED)
        wanted = [request.by_the_library_alone(make, pipeline) for request in MIXED]
        errors.append(max(float(np.abs(one - other).max()) for one, other in zip(got.pictures, wanted, strict=True)))
        note(f"{name}: {got.calls} calls in {got.forwards}, off by {errors[-1]:.1e} at most")
    return float(f"{max(errors):.2g}")


def memory(plan: Plan) -> dict[str, float]:
    pipeline = known("stable_diffusion")
    aborts_s, resident = list[float](), list[float]()
    for number in range(plan.watched + plan.watched // 4):
        job = Request(PROMPTS[number % USERS], 3, number, GUIDANCE).begin(pipeline)
        if number % 3 == 0:
            for _ in range(number % 5):
                go_on(pipeline, job)
            aborts_s.append(dropped_in_s(job))
        while job.calls_left:
            go_on(pipeline, job)
        if number >= plan.watched // 4:  # allocators have settled
            resident.append(resident_bytes() / 2**20)
    return {"abort_ms": round(max(aborts_s) * 1000, 2), "rss_slope_mb": round(slope(resident) * 1000, 2)}


def dropped_in_s(job: PipelineJob) -> float:
    began = time.perf_counter()
    with torch.no_grad():
        job.drop()
    return time.perf_counter() - began


def caches(plan: Plan) -> dict[str, dict[str, float]]:
    request = Request(PROMPTS[0], CACHED_STEPS, 0, GUIDANCE)
    exact = served(heavy)
    plain = [one_alone(exact, request) for _ in range(plan.turns)]
    found: dict[str, dict[str, float]] = {}
    for threshold in THRESHOLDS:
        cached = served(heavy, DiffusersOptions(step_cache=StepCacheOptions(threshold=threshold)))
        runs = [one_alone(cached, request) for _ in range(plan.turns)]
        answers = runs[0].answers
        found[str(threshold)] = {
            "psnr_db": round(psnr_db(runs[0].picture, plain[0].picture), 1),
            "calls_saved": round(answers.reused_calls / (answers.reused_calls + answers.computed_calls), 3),
            "speedup": round(median(run.seconds for run in plain) / median(run.seconds for run in runs), 2),
        }
        note(f"step cache of {threshold}: {found[str(threshold)]}")
    return found


@dataclass(frozen=True)
class Alone:
    picture: NDArray[np.floating]
    seconds: float
    answers: Answered


def one_alone(pipeline: Served, request: Request) -> Alone:
    began = time.perf_counter()
    job = request.begin(pipeline)
    picture = tiny_painters.alone(pipeline, job)
    return Alone(picture, time.perf_counter() - began, job.answers)


def slope(values: Sequence[float]) -> float:
    return float(np.polyfit(np.arange(len(values)), values, 1)[0])


async def main() -> None:
    await reported(measure(chosen(__doc__, FULL, SHORT)))


if __name__ == "__main__":
    asyncio.run(main())
