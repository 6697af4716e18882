"""The second half of a Piper voice (the HiFi-GAN decoder of VITS): windows of latent frames become samples."""

from collections.abc import Hashable, Sequence
from pathlib import Path
from typing import NamedTuple, cast

import msgspec
import numpy as np
from numpy.typing import NDArray

from engines.models import InvalidInput, Produced
from engines.models.onnx_session import OnnxSession, onnx_session
from engines.models.options import NetworkOptions
from engines.models.spoken_audio import SpokenAudio
from engines.parameters import Parameters, Speech
from engines.payloads import Payload
from engines.resampling import Samples

CHANNELS = 192
SAMPLES_PER_FRAME = 256
SOURCE_RATE = 22_050
LONGEST_PAUSE_MS = 10_000
WARM_FRAMES = (36, 96, 168, 344)
"""A first window, the next two of the ramp, a whole sentence."""


class PiperDecoder:
    """Takes windows of `frames` (engines/bridges/windows.py); emits PCM16 at Speech.rate with the clause's attributes and
    `decoded`, the number of frames that went through the network (`Produced.units` counts those that came out).

    A window with 12 frames of context on each side gives what whole decoding gives, within 1e-4.
    """

    units = "frames"

    def __init__(self, session: OnnxSession) -> None:
        self._session = session

    @classmethod
    def load(cls, directory: Path, options: dict[str, object]) -> "PiperDecoder":
        """Raises msgspec.ValidationError that names a wrong option."""
        return cls(onnx_session(directory / "decoder.onnx", msgspec.convert(options, NetworkOptions).threads))

    def warm_up(self) -> None:
        for frames in WARM_FRAMES:
            self.decode(np.zeros((CHANNELS, frames), np.float32))

    def open(self, parameters: Parameters) -> SpokenAudio:
        return SpokenAudio(SOURCE_RATE, cast(Speech, parameters).rate)

    def reset(self, state: SpokenAudio) -> None:
        state.reset()

    def snapshot(self, state: SpokenAudio) -> Payload:
        return state.snapshot()

    def restore(self, parameters: Parameters, snapshot: Payload) -> SpokenAudio:
        state = self.open(parameters)
        state.restore(snapshot)
        return state

    def batch_key(self, state: SpokenAudio, payload: Payload) -> Hashable:
        """Never shared: four windows in one call take four times as long as one (measured), and each would wait for all."""
        return id(state)

    def run(self, batch: Sequence[tuple[SpokenAudio, Payload]]) -> list[list[Produced] | InvalidInput]:
        return [self._sound(state, payload) for state, payload in batch]

    def flush(self, state: SpokenAudio) -> list[Produced]:
        return state.rest()

    def close(self, state: SpokenAudio) -> None:
        pass

    def decode(self, frames: NDArray[np.float32]) -> Samples:
        """[192, t] → [256·t] samples at 22.05 kHz in −1 … 1."""
        if not frames.shape[1]:
            return np.zeros(0, np.float32)
        return self._session.run(["samples"], {"frames": frames[None]})[0].ravel()

    def _sound(self, state: SpokenAudio, payload: Payload) -> list[Produced] | InvalidInput:
        try:
            window = Window.read(payload)
        except InvalidInput as wrong:
            return wrong
        decoded = window.frames.shape[1]
        kept = decoded - window.left - window.right
        samples = self.decode(window.frames)[window.left * SAMPLES_PER_FRAME : (window.left + kept) * SAMPLES_PER_FRAME]
        return [state.chunk(samples, window.pause_ms, {**payload.attributes, "decoded": decoded}, units=kept)]


class Window(NamedTuple):
    """`frames` [192, left + t + right]. `pause_ms` is the silence after the clause that ends here, None inside one."""

    frames: NDArray[np.float32]
    left: int
    right: int
    pause_ms: int | None

    @classmethod
    def read(cls, payload: Payload) -> "Window":
        """Raises InvalidInput."""
        array = payload.arrays.get("frames")
        if array is None or array.dtype != "float32" or len(array.shape) != 2 or array.shape[0] != CHANNELS:
            got = "nothing" if array is None else f"{array.dtype} of shape {array.shape}"
            raise InvalidInput(f"frames: expected float32 of shape [{CHANNELS}, t], got {got}")
        left = _number(payload, "left", array.shape[1])
        right = _number(payload, "right", array.shape[1] - left)
        ended = payload.attributes.get("clause_final") is True
        pause_ms = _number(payload, "pause_ms", LONGEST_PAUSE_MS) if ended else None
        return cls(cast(NDArray[np.float32], array.numpy()), left, right, pause_ms)


def _number(payload: Payload, name: str, most: int) -> int:
    value = payload.attributes.get(name, 0)
    if type(value) is not int or not 0 <= value <= most:
        raise InvalidInput(f"{name}: expected a whole number from 0 to {most}, got {value!r}")
    return value
