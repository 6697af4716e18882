"""ONNX Runtime on a CPU, with types: the library has none, so nothing else here imports it."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, cast

import numpy as np
from numpy.typing import NDArray

os.environ["ORT_DISABLE_TELEMETRY"] = "1"  # it is read at the import
import onnxruntime  # pyright: ignore[reportMissingTypeStubs]


class OnnxSession(Protocol):
    def run(self, output_names: Sequence[str] | None, input_feed: Mapping[str, NDArray[np.generic]]) -> list[NDArray[np.float32]]:
        """All outputs in the graph's order when `output_names` is None. Inputs by name, as C-contiguous arrays."""
        ...


def onnx_session(path: Path, threads: int = 1) -> OnnxSession:
    runtime = cast(Any, onnxruntime)
    options = runtime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    return cast(OnnxSession, runtime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"]))
