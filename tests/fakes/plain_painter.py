"""A DIFFUSION model without networks, for worker processes: each step brings the canvas nearer to the one colour of a prompt and
its seed, or to the upload at half its brightness."""

import time
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import numpy as np
from numpy.typing import NDArray

from engines.models import InvalidInput, Produced
from engines.models.diffusion import PREVIEW
from engines.models.snapshots import Snapshot, saved
from engines.parameters import Parameters, Picture
from engines.payloads import Array, Payload
from fakes.painted import SIDE, colour

KIND = "plain_painter 1"
SIDE_UNIT = 8
MOST_STEPS = 200
FRAMES_A_CHUNK = 4


@dataclass(slots=True, eq=False)
class Canvas:
    """A job. `goal` is uint8 [frames, h, w, 3]."""

    goal: NDArray[np.uint8]
    steps: int
    previews: int
    text: str
    step: int = 0
    rows: int = 1
    prepares: bool = False

    @property
    def key(self) -> Hashable:
        return self.goal.shape

    @property
    def calls_left(self) -> int:
        return self.steps - self.step

    def seen(self) -> NDArray[np.uint8]:
        return (self.goal.astype(np.float32) * (self.step / self.steps)).astype(np.uint8)


class PlainPainter:
    """The prompt `raise` raises in the first step. Option: `step_ms`."""

    units = "pictures"

    def __init__(self, step_ms: float) -> None:
        self._step_ms = step_ms

    @classmethod
    def load(cls, directory: Path, options: dict[str, object]) -> "PlainPainter":
        return cls(float(str(options.get("step_ms", 0))))

    def warm_up(self) -> None: ...

    def open(self, parameters: Parameters) -> Picture:
        wish = cast(Picture, parameters)
        if (wish.steps or 1) > MOST_STEPS:
            raise InvalidInput(f"steps: expected at most {MOST_STEPS}, got {wish.steps}")
        if wish.sampler:
            raise InvalidInput(f"sampler: expected none but the default, got {wish.sampler!r}")
        for name, side in (("width", wish.width), ("height", wish.height)):
            if side is not None and side % SIDE_UNIT:
                raise InvalidInput(f"{name}: expected a multiple of {SIDE_UNIT} pixels, got {side}")
        return wish

    def reset(self, state: Picture) -> None: ...

    def snapshot(self, state: Picture) -> Payload:
        return saved(KIND)

    def restore(self, parameters: Parameters, snapshot: Payload) -> Picture:
        Snapshot(KIND, snapshot)
        return self.open(parameters)

    def begin(self, state: Picture, payload: Payload) -> Canvas:
        if "image" in payload.arrays:
            goal = cast("NDArray[np.uint8]", payload.arrays["image"].numpy())[None] // 2
        else:
            shape = (state.frames or 1, state.height or SIDE, state.width or SIDE, 3)
            goal = np.broadcast_to(np.array(colour(payload.text, state.seed), np.uint8), shape)
        return Canvas(goal, state.steps or 4, state.previews, payload.text)

    def update(self, job: Canvas, payload: Payload) -> None:
        raise InvalidInput("update: expected none: this painter has begun already")

    def advance(self, jobs: Sequence[Canvas]) -> list[list[Produced] | Exception]:
        time.sleep(self._step_ms / 1000)  # what a network would take
        if any(job.text == "raise" for job in jobs):
            raise RuntimeError("told to")
        return [_advanced(job) for job in jobs]

    def abandon(self, job: Canvas) -> None: ...

    def close(self, state: Picture) -> None: ...


def _advanced(job: Canvas) -> list[Produced]:
    job.step += 1
    if not job.calls_left:
        chunks = range(0, len(job.goal), FRAMES_A_CHUNK)
        return [_produced(job.goal[start : start + FRAMES_A_CHUNK], units=1) for start in chunks]
    due = [step for step in range(1, job.previews + 1) if job.step == step * job.steps // (job.previews + 1)]
    return [_produced(job.seen(), units=0, **{PREVIEW: number - 1}) for number in due]


def _produced(pixels: NDArray[np.uint8], units: int, **attributes: int) -> Produced:
    return Produced(Payload(arrays={"pixels": Array.of(pixels)}, attributes=dict(attributes)), units=units)
