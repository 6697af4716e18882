"""What the kernel and the libraries of a worker are told before any of them is loaded."""

import contextlib
import os
from pathlib import Path

from engines.worker.spec import WorkerSpec

KILLED_FIRST = "800"
"""Of at most 1000: when the machine is out of memory, the kernel ends a worker, which is started again, before the gateway."""


def settle(spec: WorkerSpec) -> None:
    """Two threads on two busy cores run four times slower than one: so many as the operator says."""
    os.environ["OMP_NUM_THREADS"] = str(spec.threads)
    if spec.device is not None:
        os.environ["CUDA_VISIBLE_DEVICES"] = visible_gpus(spec.device, os.environ.get("CUDA_VISIBLE_DEVICES", ""))
    with contextlib.suppress(OSError):  # not every container lets us
        Path("/proc/self/oom_score_adj").write_text(KILLED_FIRST)


def visible_gpus(device: str, ours: str) -> str:
    """`cuda:N` is the Nth of those that this process may use itself (`ours` empty: all). Raises IndexError when it may not."""
    kind, _, number = device.partition(":")
    if kind == "cpu":
        return ""
    allowed = [gpu for gpu in ours.split(",") if gpu]
    return allowed[int(number)] if allowed else number
