"""Jobs that share calls: they join and leave at any, and none notices the others, whatever becomes of those."""

import gc
from collections.abc import Iterator
from typing import NoReturn

from engines.conformance import ConformanceFault, NotApplicable
from engines.conformance.diffusion_bench import DiffusionBench, Running
from engines.conformance.model_bench import answered
from engines.conformance.output_checks import lent
from engines.conformance.outputs import fingerprint
from engines.models import InvalidInput
from engines.payloads import Payload
from engines.worker.foreign import attempt

PLACES = 8
"""Long jobs are left and joined at so many of their calls, evenly."""


def jobs_count_down(bench: DiffusionBench) -> None:
    """what a job says of itself is the same when asked again, steps are counted up, and at the end none is left"""
    for inputs in bench.samples.sequences:
        state = bench.open()
        for payload in inputs:
            job, step = bench.begin(state, payload), 0
            while not job.is_over:
                _standing_holds(job, step)
                step = job.standing.step
                bench.call([job])
            answered(job.outcome)
            if job.standing.step < step or job.standing.step != job.standing.steps:
                raise ConformanceFault(f"at the end: expected step = steps, got {job.standing.step} of {job.standing.steps}")
        bench.finish(state)


def joining_midway_changes_nothing(bench: DiffusionBench) -> None:
    """a job that joins another at any of its calls gets what each gets alone, and so does the other"""
    first, second = (inputs[0] for inputs in bench.samples.sequences[:2])
    for place in _places(bench, first):
        states = bench.open(), bench.open()
        early = bench.begin(states[0], first)
        _calls(bench, [early], place)
        late = bench.begin(states[1], second)
        bench.to_the_end([early, late])
        for sequence, job in enumerate((early, late)):
            got = [answered(job.outcome)]
            bench.compare_within(bench.samples.tolerance, sequence, got, f"joined after {place} calls")
            bench.finish(states[sequence])
    if bench.largest_step == 1:
        raise NotApplicable("its jobs never share a call")


def an_abandoned_job_costs_no_other(bench: DiffusionBench) -> None:
    """a job may be given up at any of its calls: who shares them goes on as alone, and its own request can be reset"""
    first, second = (inputs[0] for inputs in bench.samples.sequences[:2])
    for place in _places(bench, first):
        states = bench.open(), bench.open()
        leaver, stayer = bench.begin(states[0], first), bench.begin(states[1], second)
        _calls(bench, [leaver, stayer], place)
        bench.give_up(leaver)
        bench.to_the_end([stayer])
        when = f"beside a job that was given up after {place} calls"
        bench.compare_within(bench.samples.tolerance, 1, [answered(stayer.outcome)], when)
        bench.finish(states[1])
        bench.model.reset(states[0])
        again = bench.go_on(states[0], bench.samples.sequences[0])
        bench.compare(0, again, f"after its job was given up after {place} calls, and reset")


def a_raise_costs_the_guilty_job_alone(bench: DiffusionBench) -> None:
    """when a call raises, the jobs that are called again alone get what they would have got"""
    for place in _places(bench, bench.samples.sequences[0][0]):
        states = bench.open(), bench.open()
        jobs = [bench.begin(state, bench.samples.sequences[0][0]) for state in states]
        _calls(bench, jobs, place)
        outcome = attempt(bench.model.advance, [*(job.job for job in jobs), Unreadable()])
        if not isinstance(outcome, Exception):
            raise NotApplicable("it has a job that cannot be read in a call, and does not raise")
        for job in jobs:
            bench.to_the_end([job])
            bench.compare_within(bench.samples.tolerance, 0, [answered(job.outcome)], f"after a raise at call {place}")
        for state in states:
            bench.finish(state)


class Unreadable:
    """No job: whatever is asked of it raises."""

    def __getattr__(self, name: str) -> NoReturn:
        raise RuntimeError("this job cannot be read")


def a_refused_update_changes_nothing(bench: DiffusionBench) -> None:
    """update takes a new prompt or raises InvalidInput, and then the job goes on as it was"""
    good = bench.samples.sequences[0][0]
    for number, wrong in enumerate((Payload(), *bench.samples.wrong)):
        state = bench.open()
        job = bench.begin(state, good)
        refusal = attempt(bench.model.update, job.job, wrong)
        if isinstance(refusal, Exception) and not isinstance(refusal, InvalidInput):
            raise ConformanceFault(f"update {number}: expected InvalidInput or nothing, but the model raised {refusal!r}")
        bench.to_the_end([job])
        if isinstance(refusal, InvalidInput):
            bench.compare(0, [answered(job.outcome)], f"after update {number} was refused")
        bench.finish(state)


def previews_stay_as_they_were(bench: DiffusionBench) -> None:
    """what a job has shown does not change when it goes on: payloads are not copied"""
    for sequence, inputs in enumerate(bench.samples.sequences):
        state = bench.open()
        for payload in inputs:
            job, taken = bench.begin(state, payload), list[bytes]()
            while not job.is_over:
                bench.call([job])
                taken += [fingerprint(produced.payload) for produced in job.produced[len(taken) :]]
            if [fingerprint(produced.payload) for produced in job.produced] != taken:
                raise ConformanceFault(f"sequence {sequence}: a chunk changed after it was out: copy what is used again")
        bench.finish(state)


def inputs_are_copied(bench: DiffusionBench) -> None:
    """nothing of an input's memory is kept once its job has begun: it is lent by whoever sent it"""
    state = bench.open()
    for number, payload in enumerate(bench.samples.sequences[0]):
        given, lenders = lent(payload)
        job = bench.begin(state, given)
        del given
        gc.collect()
        if kept := [name for name, lender in lenders.items() if lender() is not None]:
            raise ConformanceFault(f"input {number}: its array {kept[0]} is still held after begin: copy what is needed later")
        bench.to_the_end([job])
    bench.finish(state)


def _standing_holds(job: Running, step: int) -> None:
    known, asked = job.standing, job.job
    again = (asked.key, asked.rows, asked.calls_left, asked.step, asked.steps, asked.prepares)
    if again != known:
        raise ConformanceFault(f"key, rows, calls_left, step, steps, prepares: expected {tuple(known)} again, got {again}")
    if not step <= known.step <= known.steps:
        raise ConformanceFault(f"step: expected {step} or more, and at most {known.steps}, got {known.step}")


def _calls(bench: DiffusionBench, jobs: list[Running], count: int) -> None:
    for _ in range(count):
        bench.round(jobs)


def _places(bench: DiffusionBench, payload: Payload) -> Iterator[int]:
    """Numbers of calls that a job for this input has had, its last one not among them."""
    state = bench.open()
    job, calls = bench.begin(state, payload), 0
    while not job.is_over:
        bench.call([job])
        calls += 1
    bench.finish(state)
    yield from sorted({round(at * (calls - 1) / (PLACES - 1)) for at in range(PLACES)})
