"""Voice activity with Silero VAD: one probability of speech for every 32 ms of audio, for many streams in one call."""

from collections.abc import Callable, Hashable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import msgspec
import numpy as np
from numpy.typing import NDArray

from engines.models import InvalidInput, Produced
from engines.models.audio_input import RATE, checked_rate, padded_to, pcm_and_rate
from engines.models.onnx_session import OnnxSession, onnx_session
from engines.models.options import NetworkOptions
from engines.models.snapshots import Snapshot, saved
from engines.parameters import Activity, Parameters
from engines.payloads import Array, Payload
from engines.resampling import Quality, Samples, StreamResampler, to_float, to_pcm

WINDOW = 512
WINDOW_MS = 32
CONTEXT = 64
"""Samples of the window before that the network sees again."""
MEMORY_SHAPE = (2, 128)
KIND = "silero_vad 1"


def _silence(samples: int) -> Samples:
    return np.zeros(samples, np.float32)


def _resampler(rate: int) -> StreamResampler:
    """Low quality lags 20 ms and not 37 behind the microphone, and every turn waits for that lag."""
    return StreamResampler(rate, RATE, Quality.LOW)


@dataclass(slots=True)
class Listening:
    """One stream. `waiting` are samples at 16 kHz that fill no window yet; `windows` have been heard so far."""

    with_audio: bool
    resampler: StreamResampler | None = None
    waiting: Samples = field(default_factory=lambda: _silence(0))
    context: Samples = field(default_factory=lambda: _silence(CONTEXT))
    memory: Samples = field(default_factory=lambda: np.zeros(MEMORY_SHAPE, np.float32))
    windows: int = 0

    def reset(self) -> None:
        new = Listening(self.with_audio)
        self.resampler, self.waiting, self.context = new.resampler, new.waiting, new.context
        self.memory, self.windows = new.memory, new.windows

    def snapshot(self) -> Payload:
        arrays = {"waiting": self.waiting, "context": self.context, "memory": self.memory}
        rate = 0 if self.resampler is None else self.resampler.source_rate
        return saved(KIND, arrays, self.resampler, windows=self.windows, rate=rate)

    def restore(self, snapshot: Snapshot) -> None:
        """Raises InvalidInput."""
        self.windows = snapshot.count("windows")
        self.waiting = snapshot.floats("waiting", (None,))
        self.context = snapshot.floats("context", (CONTEXT,))
        self.memory = snapshot.floats("memory", MEMORY_SHAPE)
        rate = snapshot.count("rate")
        self.resampler = _resampler(checked_rate(rate)) if rate else None
        snapshot.resume(self.resampler)

    def going_back(self) -> Callable[[], None]:
        """What brings it back to where it is now."""
        kept = self.resampler, self.waiting, self.context, self.memory, self.windows
        heard = None if self.resampler is None else self.resampler.saved()

        def go_back() -> None:
            self.resampler, self.waiting, self.context, self.memory, self.windows = kept
            if self.resampler is not None and heard is not None:
                self.resampler.restore(*heard)

        return go_back

    def take(self, payload: Payload) -> Samples:
        """The whole windows [k, 512] that are complete with this audio. Raises InvalidInput."""
        pcm, rate = pcm_and_rate(payload)
        if self.resampler is None:
            self.resampler = _resampler(rate)
        if rate != self.resampler.source_rate:
            raise InvalidInput(f"rate: expected {self.resampler.source_rate} as at the start of the stream, got {rate}")
        return self._whole_windows(self.resampler.push(to_float(pcm)))

    def take_rest(self) -> Samples:
        """The last windows; silence fills up the very last one."""
        if self.resampler is None:
            return self._whole_windows(_silence(0))
        whole = self._whole_windows(self.resampler.flush())
        if not len(self.waiting):
            return whole
        last = padded_to(self.waiting, WINDOW)[None]
        self.waiting = _silence(0)
        return np.concatenate([whole, last])

    def _whole_windows(self, samples: Samples) -> Samples:
        joined = np.concatenate([self.waiting, samples])
        end = len(joined) // WINDOW * WINDOW
        self.waiting = joined[end:]
        return joined[:end].reshape(-1, WINDOW)


class SileroVad:
    """Weights: PyPI silero-vad 6.2.3. Inputs `input` [n, 64 + 512], `state` [2, n, 128], `sr`; outputs [n, 1] and the state.

    Takes audio payloads of any length and rate; emits `probability` float32 [k] with the attribute window_ms and, when asked
    `with_audio`, `pcm` int16 [512·k] at 16 kHz.
    """

    units = "windows"

    def __init__(self, session: OnnxSession) -> None:
        self._session = session

    @classmethod
    def load(cls, directory: Path, options: dict[str, object]) -> "SileroVad":
        """Raises msgspec.ValidationError that names a wrong option."""
        return cls(onnx_session(directory / "silero_vad.onnx", msgspec.convert(options, NetworkOptions).threads))

    def warm_up(self) -> None:
        for rows in (1, 2, 4, 8):
            self._listen([Listening(with_audio=False) for _ in range(rows)], [_silence(WINDOW)[None]] * rows)

    def open(self, parameters: Parameters) -> Listening:
        return Listening(with_audio=cast(Activity, parameters).with_audio)

    def reset(self, state: Listening) -> None:
        state.reset()

    def snapshot(self, state: Listening) -> Payload:
        return state.snapshot()

    def restore(self, parameters: Parameters, snapshot: Payload) -> Listening:
        state = self.open(parameters)
        state.restore(Snapshot(KIND, snapshot))
        return state

    def batch_key(self, state: Listening, payload: Payload) -> Hashable:
        return None

    def run(self, batch: Sequence[tuple[Listening, Payload]]) -> list[list[Produced] | InvalidInput]:
        with ExitStack() as undoing:
            for stream, _ in batch:
                undoing.callback(stream.going_back())
            answers = self._hear(batch)
            undoing.pop_all()  # nothing can raise any more
        return answers

    def _hear(self, batch: Sequence[tuple[Listening, Payload]]) -> list[list[Produced] | InvalidInput]:
        answers: list[list[Produced] | InvalidInput] = [[] for _ in batch]
        rows: list[int] = []
        heard: list[Samples] = []
        for row, (stream, payload) in enumerate(batch):
            try:
                heard.append(stream.take(payload))
                rows.append(row)
            except InvalidInput as bad:
                answers[row] = bad
        for row, produced in zip(rows, self._listen([batch[row][0] for row in rows], heard), strict=True):
            answers[row] = produced
        return answers

    def flush(self, state: Listening) -> list[Produced]:
        return self._listen([state], [state.take_rest()])[0]

    def close(self, state: Listening) -> None:
        pass

    def _listen(self, streams: Sequence[Listening], heard: Sequence[Samples]) -> list[list[Produced]]:
        """Window i of every stream that has one goes through the network in one call."""
        probabilities = [np.zeros(len(windows), np.float32) for windows in heard]
        for i in range(max(map(len, heard), default=0)):
            rows = [row for row, windows in enumerate(heard) if i < len(windows)]
            step = self._step([streams[row] for row in rows], np.stack([heard[row][i] for row in rows]))
            for row, probability in zip(rows, step, strict=True):
                probabilities[row][i] = probability
        return [_activity(*row) for row in zip(streams, heard, probabilities, strict=True)]

    def _step(self, streams: Sequence[Listening], windows: Samples) -> NDArray[np.float32]:
        """One window of each stream, [n, 512] → probabilities [n]."""
        seen = np.concatenate([np.stack([stream.context for stream in streams]), windows], axis=1)
        memory = np.stack([stream.memory for stream in streams], axis=1)
        probability, new_memory = self._session.run(None, {"input": seen, "state": memory, "sr": np.array(RATE, np.int64)})
        for row, stream in enumerate(streams):
            stream.context = seen[row, -CONTEXT:]
            stream.memory = new_memory[:, row]
        return probability[:, 0]


def _activity(stream: Listening, windows: Samples, probability: NDArray[np.float32]) -> list[Produced]:
    if not len(windows):
        return []
    arrays = {"probability": Array.of(probability)}
    attributes: dict[str, bool | int | float | str] = {"window_ms": WINDOW_MS}
    if stream.with_audio:
        arrays["pcm"] = Array.of(to_pcm(windows.ravel()))
        attributes["rate"] = RATE
    pts = stream.windows * WINDOW_MS / 1_000
    stream.windows += len(windows)
    return [Produced(Payload(arrays=arrays, attributes=attributes), pts, units=len(windows))]
