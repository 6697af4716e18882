"""Which connector carries what a stage emits: that depends on where it and its readers run."""

import os
from collections.abc import Iterable
from pathlib import Path

import msgspec

from engines.connectors.process import INLINE, SHARED_MEMORY
from engines.connectors.tcp import NAME as TCP


class Site(msgspec.Struct, frozen=True, array_like=True):
    """Where a process runs. Those of one `host` can read each other's memory: one kernel, one numbering of processes, one user.
    `is_fetchable`: those of other hosts can fetch payloads from it."""

    host: str
    is_fetchable: bool


def this_host() -> str:
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return f"{boot}/{os.readlink('/proc/self/ns/pid')}/{os.getuid()}"


def connector(producer: Site, readers: Iterable[Site]) -> str:
    """The name of the connector. Inline where nothing better reaches every reader; a payload that is too large for that fails."""
    if all(reader.host == producer.host for reader in readers):
        return SHARED_MEMORY
    return TCP if producer.is_fetchable else INLINE
