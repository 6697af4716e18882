"""Talker → code2wav: latent frames of a clause become windows with context, small ones first."""

from typing import cast

import numpy as np
from numpy.typing import NDArray

from engines.parameters import Parameters
from engines.payloads import Array, Payload
from engines.schedule import ChunkSchedule, Window, WindowCutter

FRAMES_SCHEDULE = ChunkSchedule(ramp=(24, 72, 144), left_context=12, right_context=12)
"""Frames last 11.6 ms. 24 of them are the first 279 ms of sound. Each further window, contexts included, is decoded before what
was emitted has been played, as long as decoding takes at most a quarter of real time (measured 0.05). A 4 s clause of 344 frames
is decoded in four windows, 416 frames: 1.21 times; at 12 frames of context the joined samples equal whole decoding to 2e-6."""


class FrameWindows:
    """Payloads in: `frames` float32 [192, t] with attributes clause, written_end, clause_final.

    Out: `frames` float32 [192, left + t + right] with the same attributes and `left`, `right`, in frames.
    """

    def __init__(self, parameters: Parameters, schedule: ChunkSchedule = FRAMES_SCHEDULE) -> None:
        self._cutter = WindowCutter(schedule)

    def feed(self, payload: Payload) -> list[Payload]:
        if "frames" not in payload.arrays:
            return []
        frames = cast(NDArray[np.float32], payload.arrays["frames"].numpy())
        windows = self._cutter.push(frames, segment_end=payload.attributes["clause_final"] is True)
        return [_window_payload(payload, window) for window in windows]

    def finish(self) -> list[Payload]:
        """Nothing: a clause ends with `clause_final`, and one without it was cut off by an abort."""
        return []


def _window_payload(source: Payload, window: Window) -> Payload:
    attributes = {**source.attributes, "left": window.left, "right": window.right, "clause_final": window.final}
    return Payload(arrays={"frames": Array.of(window.values)}, attributes=attributes)
