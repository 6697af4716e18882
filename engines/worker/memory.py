"""How much memory a worker holds, as the kernel counts it."""

import multiprocessing
import os
from pathlib import Path

PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


def resident_bytes() -> int:
    """Of this process and of the processes that its models started."""
    children = [child.pid for child in multiprocessing.active_children() if child.pid is not None]
    return sum(_resident_bytes(pid) for pid in (os.getpid(), *children))


def _resident_bytes(pid: int) -> int:
    try:
        _, resident_pages, *_ = Path(f"/proc/{pid}/statm").read_text().split()
    except (FileNotFoundError, ProcessLookupError):  # it ended meanwhile
        return 0
    return int(resident_pages) * PAGE_BYTES
