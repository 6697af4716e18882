"""A model for real worker processes: echoes text, and misbehaves when told to."""

import ctypes
import multiprocessing
import os
import subprocess
import sys
import tempfile
from collections.abc import Hashable, Sequence
from multiprocessing.synchronize import Semaphore
from pathlib import Path

import numpy as np

from engines.models import InvalidInput, Produced
from engines.models.stateless import Stateless
from engines.payloads import Array, Payload


class Echo(Stateless):
    """Option `unloadable`: a sentence with which loading fails. Option `crashes`: the process ends while it loads. Option
    `waits_for`: loading goes on when somebody has opened the named pipe of that path for writing. Option `bad_farewell`: closing
    raises.

    Inputs: `die` ends the process; `raise` raises; `memory` finds no memory; `hang` never returns; `grip` neither, and holds the
    GIL; `forbidden` is invalid input. `temporary` makes a temporary file and echoes its path; `spawn` starts a process that
    outlives the call and echoes its id; `semaphore` makes one that its children could find, and echoes its file in /dev/shm;
    `environment NAME` echoes that variable; `hold MB` keeps so much memory; `fill VALUE NBYTES` makes an array of so many bytes.
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
        if pipe := options.get("waits_for"):
            Path(str(pipe)).open("rb").close()
        return cls(bad_farewell=bool(options.get("bad_farewell")))

    def __init__(self, *, bad_farewell: bool) -> None:
        self._bad_farewell = bad_farewell
        self._held: list[bytes] = []
        self._semaphores: list[Semaphore] = []

    def warm_up(self) -> None:
        pass

    def batch_key(self, state: None, payload: Payload) -> Hashable:
        return 0

    def run(self, batch: Sequence[tuple[None, Payload]]) -> list[list[Produced] | InvalidInput]:
        return [self._answer(payload) for _, payload in batch]

    def close(self, state: None) -> None:
        if self._bad_farewell:
            raise RuntimeError("told to")

    def _answer(self, payload: Payload) -> list[Produced] | InvalidInput:
        _misbehave(payload.text)
        match payload.text.split():
            case ["temporary"]:
                handle, path = tempfile.mkstemp()
                os.close(handle)
                return [Produced(Payload(text=path))]
            case ["environment", name]:
                return [Produced(Payload(text=os.environ[name]))]
            case ["semaphore"]:
                before = set(os.listdir("/dev/shm"))
                self._semaphores.append(multiprocessing.get_context("spawn").Semaphore())
                return [Produced(Payload(text=" ".join(set(os.listdir("/dev/shm")) - before)))]
            case ["spawn"]:
                child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
                return [Produced(Payload(text=str(child.pid)))]
            case ["hold", megabytes]:
                self._held.append(b"x" * (int(megabytes) << 20))
                return [Produced(payload)]
            case ["forbidden"]:
                return InvalidInput("text: expected anything else, got 'forbidden'")
            case ["fill", value, nbytes] if not payload.arrays:
                return [Produced(Payload(payload.text, {"filled": Array.of(np.full(int(nbytes), int(value), np.uint8))}))]
            case _:
                return [Produced(payload)]


def _misbehave(text: str) -> None:
    match text:
        case "die":
            os._exit(1)
        case "raise":
            raise RuntimeError("told to")
        case "memory":
            raise MemoryError("told to")
        case "hang":
            while True:
                pass
        case "grip":
            while True:
                ctypes.PyDLL(None).sleep(60)
        case _:
            pass
