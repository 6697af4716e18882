"""Where a process runs, as far as its payloads are concerned."""

import os
from enum import StrEnum
from pathlib import Path

import msgspec


class Carrier(StrEnum):
    """The connectors between hosts, by name."""

    TCP = "tcp"
    MOONCAKE = "mooncake"


class Site(msgspec.Struct, frozen=True, array_like=True):
    """Those of one `host` can read each other's memory: one kernel, one numbering of processes, one user. `fetched_by`
    is the connector with which others can fetch payloads from it; empty: they cannot."""

    host: str
    fetched_by: str = ""


NOWHERE = Site("")
"""Whose payloads travel inline."""


def this_host() -> str:
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return f"{boot}/{os.readlink('/proc/self/ns/pid')}/{os.getuid()}"
