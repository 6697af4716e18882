"""What a process has used of the cores and of the memory, from /proc."""

import os
from pathlib import Path

TICKS_PER_S = os.sysconf("SC_CLK_TCK")


def cpu_s(pid: int) -> float:
    """User and system time of its threads since its start; without its children."""
    user, system = _fields(pid)[11:13]
    return (int(user) + int(system)) / TICKS_PER_S


def pss_mb(pid: int) -> float:
    """Its memory; what it shares with others is shared out among them (proportional set size)."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024


def children(pid: int) -> list[int]:
    """Those that it has started itself."""
    return [int(child) for task in Path(f"/proc/{pid}/task").iterdir() for child in (task / "children").read_text().split()]


def child(pid: int, title: str) -> int:
    """The child of `pid` that shows itself under this title. Raises LookupError."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal() and _is_child(int(entry.name), pid, title):
            return int(entry.name)
    raise LookupError(f"process {pid} has no child {title!r}")


def _is_child(candidate: int, pid: int, title: str) -> bool:
    try:
        shown = Path(f"/proc/{candidate}/cmdline").read_bytes().rstrip(b"\0").decode(errors="replace")
        return shown.strip() == title and int(_fields(candidate)[1]) == pid
    except FileNotFoundError:
        return False


def _fields(pid: int) -> list[str]:
    """Of /proc/PID/stat, from the third on: the second is a name in brackets and may hold anything."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
