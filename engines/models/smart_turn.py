"""End of turn with Smart Turn v3: how likely has the speaker finished, judged by the sound of the last 8 s?"""

from collections.abc import Hashable, Sequence
from pathlib import Path

import msgspec
import numpy as np

from engines.models import InvalidInput, Produced
from engines.models.audio_input import RATE, heard
from engines.models.log_mel import log_mel
from engines.models.onnx_session import OnnxSession, onnx_session
from engines.models.options import NetworkOptions
from engines.models.stateless import Stateless
from engines.payloads import Payload
from engines.resampling import Samples

HEARD_SAMPLES = 8 * RATE


class SmartTurn(Stateless):
    """Weights: PyPI pipecat-ai 1.14.0, smart-turn v3.2 for CPUs. Input `input_features` [n, 80, 800]; output [n, 1], which is
    a probability already, although the graph calls it logits.

    Takes one audio payload per decision and answers it with the attribute `probability`.
    """

    units = "decisions"

    def __init__(self, session: OnnxSession) -> None:
        self._session = session

    @classmethod
    def load(cls, directory: Path, options: dict[str, object]) -> "SmartTurn":
        """Raises msgspec.ValidationError that names a wrong option."""
        return cls(onnx_session(directory / "smart-turn-v3.2-cpu.onnx", msgspec.convert(options, NetworkOptions).threads))

    def warm_up(self) -> None:
        for rows in (1, 2):
            self._decide([np.zeros(RATE, np.float32)] * rows)

    def batch_key(self, state: None, payload: Payload) -> Hashable:
        return None

    def run(self, batch: Sequence[tuple[None, Payload]]) -> list[list[Produced] | InvalidInput]:
        audio = [heard(payload) for _, payload in batch]
        decisions = iter(self._decide([samples for samples in audio if not isinstance(samples, InvalidInput)]))
        return [samples if isinstance(samples, InvalidInput) else [next(decisions)] for samples in audio]

    def _decide(self, audio: Sequence[Samples]) -> list[Produced]:
        if not audio:
            return []
        (probabilities,) = self._session.run(None, {"input_features": np.stack([features(samples) for samples in audio])})
        return [Produced(Payload(attributes={"probability": float(row[0])}), units=1) for row in probabilities]


def features(samples: Samples) -> Samples:
    """Samples at 16 kHz → [80, 800]: the last 8 s with silence before what is shorter, brought to mean 0 and variance 1."""
    last = samples[-HEARD_SAMPLES:]
    whole = np.pad(last, (HEARD_SAMPLES - len(last), 0))
    return log_mel((whole - whole.mean()) / np.sqrt(whole.var() + 1e-7))
