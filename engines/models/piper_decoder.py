"""The second half of a Piper voice (the HiFi-GAN decoder of VITS): windows of latent frames become samples."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import msgspec
import numpy as np
from numpy.typing import NDArray

from engines.models import InvalidInput, Produced
from engines.models.joints import ClauseJoints
from engines.models.onnx_session import OnnxSession, onnx_session
from engines.parameters import Parameters, Speech
from engines.payloads import Payload, Scalar, audio
from engines.resampling import Quality, Samples, StreamResampler, to_pcm

CHANNELS = 192
SAMPLES_PER_FRAME = 256
SOURCE_RATE = 22_050
WARM_FRAMES = (36, 96, 168, 344)
"""A first window, the next two of the ramp, a whole sentence."""


class Options(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    threads: int = 1


@dataclass(slots=True)
class Sounding:
    """One request. `samples` at the wanted rate have been emitted so far; `last` are the attributes of its last chunk."""

    rate: int
    resampler: StreamResampler
    joints: ClauseJoints
    samples: int = 0
    last: dict[str, Scalar] = field(default_factory=dict[str, Scalar])


class PiperDecoder:
    """Takes what FrameWindows makes; emits PCM16 at Speech.rate with the clause's attributes and `decoded`, the number of frames
    that went through the network (`Produced.units` counts those that came out).

    A window with 12 frames of context on each side gives what whole decoding gives, within 1e-4.
    """

    units = "frames"

    def __init__(self, session: OnnxSession) -> None:
        self._session = session

    @classmethod
    def load(cls, directory: Path, options: dict[str, object]) -> "PiperDecoder":
        """Raises msgspec.ValidationError that names a wrong option."""
        return cls(onnx_session(directory / "decoder.onnx", msgspec.convert(options, Options).threads))

    def warm_up(self) -> None:
        for frames in WARM_FRAMES:
            self.decode(np.zeros((CHANNELS, frames), np.float32))

    def open(self, parameters: Parameters) -> Sounding:
        rate = cast(Speech, parameters).rate
        # Low quality lags 1 ms and not 42: what is emitted of a clause is all of it, not all but its end.
        return Sounding(rate, StreamResampler(SOURCE_RATE, rate, Quality.LOW), ClauseJoints(SOURCE_RATE))

    def batch_key(self, state: Sounding, payload: Payload) -> Hashable:
        return None

    def run(self, batch: Sequence[tuple[Sounding, Payload]]) -> list[list[Produced] | InvalidInput]:
        """Rows run one by one: four windows in one call take four times as long as one (measured)."""
        return [self._sound(state, payload) for state, payload in batch]

    def flush(self, state: Sounding) -> list[Produced]:
        rest = state.resampler.flush()
        return [_produced(state, rest, units=0)] if len(rest) else []

    def close(self, state: Sounding) -> None:
        pass

    def decode(self, frames: NDArray[np.float32]) -> Samples:
        """[192, t] → [256·t] samples at 22.05 kHz in −1 … 1."""
        if not frames.shape[1]:
            return np.zeros(0, np.float32)
        return self._session.run(["samples"], {"frames": frames[None]})[0].ravel()

    def _sound(self, state: Sounding, payload: Payload) -> list[Produced] | InvalidInput:
        window = payload.arrays.get("frames")
        if window is None or window.dtype != "float32" or len(window.shape) != 2 or window.shape[0] != CHANNELS:
            got = "nothing" if window is None else f"{window.dtype} of shape {window.shape}"
            return InvalidInput(f"frames: expected float32 of shape [{CHANNELS}, t], got {got}")
        frames = cast(NDArray[np.float32], window.numpy())
        attributes = payload.attributes
        left, right = int(attributes.get("left", 0)), int(attributes.get("right", 0))
        decoded, kept = frames.shape[1], frames.shape[1] - left - right
        samples = self.decode(frames)[left * SAMPLES_PER_FRAME : (left + kept) * SAMPLES_PER_FRAME]
        pause_ms = int(attributes.get("pause_ms", 0)) if attributes.get("clause_final") is True else None
        state.last = {name: attributes[name] for name in ("clause", "written_end", "clause_final") if name in attributes}
        spoken = state.resampler.push(state.joints.join(samples, pause_ms))
        return [_produced(state, spoken, units=kept, decoded=decoded)]


def _produced(state: Sounding, samples: Samples, units: int, decoded: int = 0) -> Produced:
    sound = audio(to_pcm(samples).tobytes(), state.rate)
    payload = msgspec.structs.replace(sound, attributes={**sound.attributes, **state.last, "decoded": decoded})
    pts = state.samples / state.rate
    state.samples += len(samples)
    return Produced(payload, pts, units)
