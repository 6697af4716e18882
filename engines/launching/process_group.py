"""The end of a process group.

Python's resource trackers are spared: each ends by itself as soon as nobody is left whom it serves, and removes before what the
others have left in shared memory, such as named semaphores, which outlive whoever is killed.
"""

import contextlib
import os
import signal
from pathlib import Path

TRACKER = b"multiprocessing.resource_tracker"


def kill_all_but_trackers(group: int) -> list[int]:
    """Also what they are starting just now, and the caller last when it is one of them. Returns the trackers."""
    ourselves = os.getpid()
    told: set[int] = {ourselves}
    while others := [pid for pid in _members(group) if pid not in told and not _is_tracker(pid)]:
        for pid in others:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        told.update(others)
    if os.getpgrp() == group:
        os.kill(ourselves, signal.SIGKILL)
    return [pid for pid in _members(group) if pid not in told]


def _members(group: int) -> list[int]:
    return [pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if _lives_in(pid, group)]


def _lives_in(pid: int, group: int) -> bool:
    try:
        state, _, its_group, *_ = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return int(its_group) == group and state not in "ZXx"


def _is_tracker(pid: int) -> bool:
    try:
        return TRACKER in Path(f"/proc/{pid}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return False
