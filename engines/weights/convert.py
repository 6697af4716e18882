"""Conversions, each in a process of its own: they need torch or onnx, and their memory goes when they end."""

import importlib
import os
import subprocess
import sys
from pathlib import Path

from engines.weights.cache import WeightsError

CONVERTERS: dict[str, str] = {
    "gguf": "engines.weights.gguf:convert",
    "piper_graph": "engines.weights.piper_graph:cut",
}
"""Each is called with the source file and the folder to write into."""

_QUIET_OFFLINE = {"HF_HUB_OFFLINE": "1", "TQDM_DISABLE": "1", "TRANSFORMERS_VERBOSITY": "error", "PYTHONWARNINGS": "ignore"}
_ROOT = Path(__file__).parents[2]


def run_converter(name: str, source: Path, target: Path) -> None:
    """Raises WeightsError with the last line that the converter said."""
    command = [sys.executable, "-m", "engines.weights.convert", name, str(source), str(target)]
    done = subprocess.run(command, cwd=_ROOT, env=os.environ | _QUIET_OFFLINE, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        said = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
        raise WeightsError(f"the conversion {name!r} of {source.name} failed: {said[-1]}")


def main(name: str, source: str, target: str) -> None:
    module, function = CONVERTERS[name].split(":")
    vars(importlib.import_module(module))[function](Path(source), Path(target))


if __name__ == "__main__":
    main(*sys.argv[1:])
