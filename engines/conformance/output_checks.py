"""What comes out: complete, in order, repeatable, nobody else's memory, and none of it kept."""

import gc
import math
import time
import tracemalloc
import weakref
from collections.abc import Sequence
from typing import Any, TypeAlias

import msgspec
import numpy as np

from engines.conformance import ConformanceFault, NotApplicable
from engines.conformance.model_bench import ModelBench
from engines.conformance.outputs import Answers, difference, fingerprint, payload_difference, travelled
from engines.models import Produced
from engines.payloads import Array, Payload
from engines.worker.memory import resident_bytes

Bench: TypeAlias = ModelBench[Any]
ROUNDS = 12
LEAST_ROUNDS, LONGEST_S = 3, 2.0
"""Slow models get fewer."""
KEPT_LIMIT_BYTES = 4_096
"""A round may leave this much of Python's memory on average: interned strings, counters that grow a digit."""
RESIDENT_LIMIT_BYTES = 16 << 20
"""All rounds together may grow the process by this much: allocators keep what they once had."""


def nothing_owes_nothing(bench: Bench) -> None:
    """a request without input gets no output"""
    if owed := bench.finish(bench.open()):
        raise ConformanceFault(f"flush after no input: expected nothing, got {len(owed)} chunks")


def samples_make_something(bench: Bench) -> None:
    """every sequence of the samples gives at least one chunk"""
    for sequence in range(len(bench.samples.sequences)):
        if not any(bench.alone(sequence)):
            raise ConformanceFault(f"sequence {sequence} gave nothing at all, so the checks prove nothing: choose other samples")


def times_and_units_advance(bench: Bench) -> None:
    """pts never goes back, units are never negative"""
    for sequence in range(len(bench.samples.sequences)):
        before = 0.0
        for produced in _flat(bench.alone(sequence)):
            if not math.isfinite(produced.pts) or produced.pts < before:
                raise ConformanceFault(f"pts: expected {before} s or later, got {produced.pts}")
            if produced.units < 0:
                raise ConformanceFault(f"units: expected 0 or more, got {produced.units}")
            before = produced.pts


def repeats_itself(bench: Bench) -> None:
    """the same inputs and seed give the same output, also from another instance"""
    for sequence, inputs in enumerate(bench.samples.sequences):
        bench.compare(sequence, bench.answers(inputs), "run again")
    another = bench.over(bench.load())
    bench.compare(0, another.answers(bench.samples.sequences[0]), "run by another instance")


def seeds_matter(bench: Bench) -> None:
    """another seed gives another output"""
    if bench.samples.reseeded is None:
        raise NotApplicable("it draws nothing")
    other = bench.answers(bench.samples.sequences[0], bench.samples.reseeded)
    if not difference(bench.alone(0), other):
        raise ConformanceFault("another seed gave the same output")


def outputs_travel(bench: Bench) -> None:
    """what comes out can be sent, and arrives as it was"""
    for produced in _flat(bench.alone(0)):
        try:
            arrived = travelled(produced.payload)
        except (TypeError, ValueError, OverflowError, msgspec.MsgspecError) as unsendable:
            raise ConformanceFault(f"a payload cannot be sent: {unsendable}") from unsendable
        if fault := payload_difference(produced.payload, arrived):
            raise ConformanceFault(f"a payload arrives otherwise: {fault}")


def outputs_stay_as_they_were(bench: Bench) -> None:
    """a chunk that is out does not change when the model goes on: payloads are not copied"""
    state, made, taken = bench.open(), list[Produced](), list[bytes]()
    for payload in bench.samples.sequences[0]:
        made += bench.answer(state, payload)
        taken += [fingerprint(produced.payload) for produced in made[len(taken) :]]
    made += bench.finish(state)
    taken += [fingerprint(produced.payload) for produced in made[len(taken) :]]
    bench.answers(bench.samples.sequences[1])
    for number, (produced, before) in enumerate(zip(made, taken, strict=True)):
        if fingerprint(produced.payload) != before:
            raise ConformanceFault(f"chunk {number} changed after it was out: copy what is used again")


def inputs_are_let_go(bench: Bench) -> None:
    """nothing of an input's memory is kept after its step: it is lent by whoever sent it"""
    state = bench.open()
    for number, payload in enumerate(bench.samples.sequences[0]):
        given, lenders = lent(payload)
        bench.answer(state, given)
        del given
        gc.collect()
        if kept := [name for name, lender in lenders.items() if lender() is not None]:
            raise ConformanceFault(f"input {number}: its array {kept[0]} is still held after the step: copy what is needed later")
    bench.finish(state)


def memory_stays_flat(bench: Bench) -> None:
    """requests that have been closed leave no memory behind"""
    _round(bench)
    tracemalloc.start()
    try:
        for _ in range(2):
            _round(bench)
        kept, resident, rounds = _traced(), resident_bytes(), _rounds(bench)
        per_round, grown = (_traced() - kept) / rounds, resident_bytes() - resident
    finally:
        tracemalloc.stop()
    if per_round > KEPT_LIMIT_BYTES:
        raise ConformanceFault(f"memory: expected at most {KEPT_LIMIT_BYTES} bytes kept a round, got {per_round:.0f}")
    if grown > RESIDENT_LIMIT_BYTES:
        raise ConformanceFault(f"memory: the process has grown by {grown} bytes in {rounds} rounds")


def _rounds(bench: Bench) -> int:
    started = time.perf_counter()
    for rounds in range(1, ROUNDS + 1):
        _round(bench)
        if rounds >= LEAST_ROUNDS and time.perf_counter() - started > LONGEST_S:
            return rounds
    return ROUNDS


def _round(bench: Bench) -> None:
    """Opened, run, and closed in the middle, as an abort does."""
    state = bench.open()
    *others, last = bench.samples.sequences[-1]
    for payload in others:
        bench.answer(state, payload)
    bench.break_off(state, last)
    bench.model.close(state)


def _traced() -> int:
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


def lent(payload: Payload) -> tuple[Payload, dict[str, "weakref.ref[object]"]]:
    """The payload in memory of its own, and what tells whether somebody holds that."""
    lenders = {name: np.frombuffer(bytes(array.data), np.uint8).copy() for name, array in payload.arrays.items()}
    arrays = {name: Array(array.dtype, array.shape, lenders[name].data.toreadonly()) for name, array in payload.arrays.items()}
    references: dict[str, weakref.ref[object]] = {name: weakref.ref(lender) for name, lender in lenders.items()}
    return Payload(payload.text, arrays, payload.attributes), references


def _flat(answers: Answers) -> Sequence[Produced]:
    return [produced for of_input in answers for produced in of_input]
