"""What this machine has: memory, cores and GPUs, read from the kernel, so that no library has to be loaded for it."""

import os
import re
from pathlib import Path

import msgspec

KIB = 1024
CGROUP_FILES = ("memory.max", "memory.limit_in_bytes")
"""The limit's name in version 2 and in version 1."""


class Machine(msgspec.Struct, frozen=True):
    """`memory_bytes` is what may be used here: all that is built in, or the least limit of our control groups."""

    memory_bytes: int
    cores: int
    gpus: int


def this_machine(root: Path = Path("/")) -> Machine:
    """`root` stands for the file system's."""
    return Machine(
        memory_bytes=min([_memory_bytes(root), *_cgroup_limits(root)]),
        cores=len(os.sched_getaffinity(0)),
        gpus=_gpus(root, os.environ.get("CUDA_VISIBLE_DEVICES")),
    )


def _gpus(root: Path, allowed: str | None) -> int:
    """Windows shows all of them to its Linux as one device, `dxg`."""
    names = [device.name for device in (root / "dev").iterdir()]
    there = sum(bool(re.fullmatch(r"nvidia\d+|dxg", name)) for name in names)
    return there if allowed is None else min(there, sum(bool(gpu) for gpu in allowed.split(",")))


def _memory_bytes(root: Path) -> int:
    for line in (root / "proc/meminfo").read_text().splitlines():
        if line.startswith("MemTotal:"):
            return int(line.split()[1]) * KIB
    raise ValueError("/proc/meminfo has no MemTotal")


def _cgroup_limits(root: Path) -> list[int]:
    """Of our group and of all that it lies in; a group sets no limit with the word `max`, or with a number beyond any memory."""
    limits: list[int] = []
    for line in (root / "proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers in ("", "memory"):
            mount = root / "sys/fs/cgroup" / controllers
            group = mount / path.strip("/")
            for folder in (group, *group.parents):
                limits += _limit(folder)
                if folder == mount:
                    break
    return limits


def _limit(folder: Path) -> list[int]:
    for name in CGROUP_FILES:
        if (file := folder / name).is_file() and (text := file.read_text().strip()) != "max":
            return [int(text)]
    return []
