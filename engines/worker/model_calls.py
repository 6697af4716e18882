"""What a GENERATION engine runs inside its thread."""

import time
from traceback import clear_frames
from typing import NamedTuple, TypeAlias

from engines.models import GenerationModel, Produced
from engines.payloads import Payload
from engines.worker.answers import Answer, answers, outputs
from engines.worker.foreign import attempt

Outcome: TypeAlias = Answer


class Step(NamedTuple):
    """One outcome for each row. `run_ms` is measured inside the thread."""

    outcomes: list[Outcome]
    run_ms: float


class Flushed(NamedTuple):
    outcome: Outcome
    run_ms: float


def run_batch(model: GenerationModel[object], batch: list[tuple[object, Payload]]) -> Step:
    """When the model raises for a batch, its rows run one by one, so that only the guilty one fails."""
    started = time.perf_counter()
    answer = attempt(model.run, batch)
    if isinstance(answer, Exception):
        # Its traceback would keep what the failed call had allocated, and so fail the rows after it when that was all the memory.
        clear_frames(answer.__traceback__)
    if isinstance(answer, Exception) and len(batch) > 1:
        outcomes = [run_batch(model, [row]).outcomes[0] for row in batch]
    elif isinstance(answer, Exception):
        outcomes: list[Answer] = [answer]
    else:
        outcomes = answers(answer, len(batch))
    return Step(outcomes, _ms_since(started))


def flush_and_close(model: GenerationModel[object], state: object) -> Flushed:
    """`close` is called whatever `flush` does; its own failure counts too."""
    started = time.perf_counter()
    flushed = attempt(_flushed, model, state)
    closed = attempt(model.close, state)
    return Flushed(closed if isinstance(closed, Exception) else flushed, _ms_since(started))


def _flushed(model: GenerationModel[object], state: object) -> list[Produced]:
    return outputs(model.flush(state))


def _ms_since(started: float) -> float:
    return (time.perf_counter() - started) * 1000
