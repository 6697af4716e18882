"""A tiny world through NativeModel, as tests drive it: its jobs called together, to their ends."""

from collections.abc import Sequence
from typing import TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from engines.diffusion.native.levels import Parametrisation
from engines.diffusion.native.model import NativeJob, NativeModel
from engines.diffusion.native.sessions import Session
from engines.models import Produced
from engines.models.options import NativeOptions
from engines.payloads import Payload
from fakes.tiny_world import Asked, Seen, TinyWorld, acting, frame

Model: TypeAlias = NativeModel[Seen, Asked]
Job: TypeAlias = NativeJob[Seen, Asked]


def world(takes: Parametrisation = "flow", **options: object) -> tuple[TinyWorld, Model]:
    network = TinyWorld(takes)
    return network, NativeModel(network, msgspec.convert(options, NativeOptions))


def finished(model: Model, jobs: Sequence[Job]) -> list[list[Produced]]:
    """All of them called together as long as they have calls left, by their keys."""
    answers: dict[int, list[Produced]] = {}
    while going := [job for job in jobs if job.calls_left]:
        together = [job for job in going if job.key == going[0].key]
        for job, outcome in zip(together, model.advance(together), strict=True):
            if isinstance(outcome, Exception):
                raise outcome
            if not job.calls_left:
                answers[id(job)] = outcome
    return [answers[id(job)] for job in jobs]


def shown(model: Model, state: Session[Seen], payload: Payload) -> NDArray[np.float32]:
    return frame(finished(model, [model.begin(state, payload)])[0])


def rollout(model: Model, state: Session[Seen], actions: Sequence[int]) -> list[bytes]:
    return [shown(model, state, acting(action)).tobytes() for action in actions]
