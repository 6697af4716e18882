"""Locks on single bytes of an open file, which say who is alive: they end with the process that holds them.

They belong to the open file (`F_OFD_SETLK`), not to the process: one process can hold and see several, and closing some other
descriptor of the same file ends none of them.
"""

import fcntl
import functools
import struct

FLOCK = struct.Struct("hhqqi4x")
"""`struct flock` of 64-bit Linux: type, whence (0: from the start), start, length, pid (0 for these locks)."""
UNLOCKED = struct.pack("h", fcntl.F_UNLCK)


def take(fd: int, byte: int) -> bool:
    """False when somebody else has it."""
    try:
        fcntl.fcntl(fd, fcntl.F_OFD_SETLK, _wanted(fcntl.F_WRLCK, byte))
    except BlockingIOError:
        return False
    return True


def leave(fd: int, byte: int) -> None:
    fcntl.fcntl(fd, fcntl.F_OFD_SETLK, _wanted(fcntl.F_UNLCK, byte))


def is_taken(fd: int, byte: int) -> bool:
    """By somebody else than this open file."""
    return not fcntl.fcntl(fd, fcntl.F_OFD_GETLK, _wanted(fcntl.F_WRLCK, byte)).startswith(UNLOCKED)


@functools.cache
def _wanted(kind: int, byte: int) -> bytes:
    return FLOCK.pack(kind, 0, byte, 1, 0)
