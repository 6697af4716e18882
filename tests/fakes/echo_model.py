"""A model for real worker processes: echoes text, and misbehaves when told to."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Hashable, Sequence
from pathlib import Path

import numpy as np

from engines.models import InvalidInput, Produced
from engines.models.stateless import Stateless
from engines.payloads import Array, Payload


class Echo(Stateless):
    """Option `unloadable`: a sentence with which loading fails. Option `crashes`: the process ends while it loads.

    Inputs: `die` ends the process; `temporary` makes a temporary file and echoes its path; `spawn` starts a process that outlives
    the call and echoes its id; `raise` raises; `hang` never returns; `forbidden` is invalid input; `fill VALUE NBYTES` makes an
    array of that many bytes.
    """

    units = "inputs"

    @classmethod
    def load(cls, directory: Path, options: dict[str, object]) -> "Echo":
        if options.get("crashes"):
            sys.stderr.write("no room for the weights\n")
            sys.stderr.flush()
            os._exit(3)
        if sentence := options.get("unloadable"):
            raise ValueError(sentence)
        return cls()

    def warm_up(self) -> None:
        pass

    def batch_key(self, state: None, payload: Payload) -> Hashable:
        return 0

    def run(self, batch: Sequence[tuple[None, Payload]]) -> list[list[Produced] | InvalidInput]:
        return [self._answer(payload) for _, payload in batch]

    def _answer(self, payload: Payload) -> list[Produced] | InvalidInput:
        match payload.text:
            case "die":
                os._exit(1)
            case "temporary":
                handle, path = tempfile.mkstemp()
                os.close(handle)
                return [Produced(Payload(text=path))]
            case "spawn":
                child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
                return [Produced(Payload(text=str(child.pid)))]
            case "raise":
                raise RuntimeError("told to")
            case "hang":
                while True:
                    pass
            case "forbidden":
                return InvalidInput("text: expected anything else, got 'forbidden'")
            case text if text.startswith("fill "):
                _, value, nbytes = text.split()
                return [Produced(Payload(text, {"filled": Array.of(np.full(int(nbytes), int(value), np.uint8))}))]
            case _:
                return [Produced(payload)]
