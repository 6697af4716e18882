"""What the operator gives each worker process: stages, threads, a device, memory; and whether this machine has that much."""

import logging
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, TypeAlias

import msgspec

from engines.configuration import WrongValue, shown
from engines.launching.machine import Machine
from engines.network.addresses import TcpAddress, address
from engines.worker.spec import DEFAULT_RING_MB

GB = 10**9
MIB = 1 << 20
GATEWAY_RING_MB = 8
"""For what callers feed in. It is small, as a rule: 20 ms of audio have 640 bytes, a picture a megabyte."""
DEVICE = r"cpu|cuda:[0-9]{1,3}"
NAME = r"[A-Za-z0-9_-]{1,24}"
"""Of a worker: the path of its socket must fit into 107 bytes."""

Threads: TypeAlias = Annotated[int, msgspec.Meta(ge=1, le=1_024)]
Replicas: TypeAlias = Annotated[int, msgspec.Meta(ge=1, le=64)]
Gigabytes: TypeAlias = Annotated[float, msgspec.Meta(gt=0, le=1e6)]
Ring: TypeAlias = Annotated[int, msgspec.Meta(ge=1, le=1 << 16)]

log = logging.getLogger(__name__)


class WorkerSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One process (or `replicas` alike) that runs these stages. `threads` is for each library of numerics in it.

    `device` is `cpu` or `cuda:N`, the only device that its libraries see; by default the first GPU where there is one.
    `memory_gb` (10⁹ bytes) is what each process may hold, with those that its models start; a worker that holds more is started
    again. It is looked at every few seconds, so that what bursts within one is the kernel's to end. `ring_mb` (2²⁰ bytes) is the
    memory through which its payloads reach others on its machine.

    `address` (`tcp://host:port` or `unix:/path`): somebody else runs it, there, with `antiphon worker`.
    """

    stages: Annotated[tuple[str, ...], msgspec.Meta(min_length=1)]
    threads: Threads = 1
    replicas: Replicas = 1
    device: str | None = None
    memory_gb: Gigabytes | None = None
    ring_mb: Ring = DEFAULT_RING_MB
    address: str = ""

    def __post_init__(self) -> None:
        if self.device is not None and not re.fullmatch(DEVICE, self.device):
            raise ValueError(f"device: expected cpu or cuda:N, got {self.device!r}")
        if not self.address:
            return
        place = address(self.address)
        if isinstance(place, TcpAddress) and (place.is_wildcard or not place.port):
            raise ValueError(f"address: expected a host and a port that can be connected to, got {self.address!r}")
        if self.replicas != 1:
            raise ValueError(f"replicas: expected 1 for a worker with an address, got {self.replicas}")


def with_device(worker: WorkerSettings, machine: Machine) -> WorkerSettings:
    if worker.device is not None or worker.address:
        return worker
    return msgspec.structs.replace(worker, device="cuda:0" if machine.gpus else "cpu")


def process_names(name: str, worker: WorkerSettings) -> list[str]:
    """Of its replicas, which are processes of their own."""
    return [name] if worker.replicas == 1 else [f"{name}-{number}" for number in range(1, worker.replicas + 1)]


def check_names(file: Path, workers: Mapping[str, WorkerSettings]) -> None:
    """Raises ConfigurationError for a name that is no name of a socket, or that a replica of another worker has."""
    taken: dict[str, str] = {}
    for name, worker in workers.items():
        if not re.fullmatch(NAME, name):
            raise WrongValue(file, f"workers.{name}", "a name of 1 to 24 letters, digits, - and _", shown(name))
        for process in process_names(name, worker):
            if process in taken:
                raise WrongValue(
                    file, f"workers.{name}", f"another name than a replica of {taken[process]!r} has", shown(process)
                )
            taken[process] = name


def check_fits(file: Path, workers: Mapping[str, WorkerSettings], machine: Machine) -> None:
    """Raises ConfigurationError for a device or for memory that `machine` does not have. Too many threads are a warning.
    Workers elsewhere need nothing of it."""
    workers = {name: worker for name, worker in workers.items() if not worker.address}
    for name, worker in workers.items():
        _check_device(file, name, worker, machine)
        if worker.threads > machine.cores:
            log.warning("workers.%s.threads: %d, and this machine has %d cores", name, worker.threads, machine.cores)
    _check_memory(file, workers, machine)


def _check_device(file: Path, name: str, worker: WorkerSettings, machine: Machine) -> None:
    kind, _, number = (worker.device or "").partition(":")
    if kind == "cuda" and int(number) >= machine.gpus:
        there = ", ".join(["cpu", *(f"cuda:{gpu}" for gpu in range(machine.gpus))])
        raise WrongValue(file, f"workers.{name}.device", f"one of {there} (what this machine has)", f"'{worker.device}'")


def _check_memory(file: Path, workers: Mapping[str, WorkerSettings], machine: Machine) -> None:
    needs = {name: _bytes_needed(worker) for name, worker in workers.items()}
    needed = sum(needs.values()) + GATEWAY_RING_MB * MIB
    if needed > machine.memory_bytes:
        key = "memory_gb" if any(worker.memory_gb for worker in workers.values()) else "ring_mb"
        most = max(needs, key=lambda name: needs[name])
        shares = ", ".join(f"{name} {need / GB:.2f}" for name, need in needs.items())
        expected = f"at most {machine.memory_bytes / GB:.2f} GB in all workers and rings together (what this machine has)"
        raise WrongValue(file, f"workers.{most}.{key}", expected, f"{needed / GB:.2f} GB: {shares}")


def _bytes_needed(worker: WorkerSettings) -> float:
    return worker.replicas * ((worker.memory_gb or 0) * GB + worker.ring_mb * MIB)
