"""Locks on single bytes of an open file, which say who is alive: they end with the process that holds them.

They belong to the open file (`F_OFD_SETLK`), not to the process: one process can hold and see several, and closing some other
descriptor of the same file ends none of them.
"""

import fcntl
import struct

FLOCK = struct.Struct("hhqqi4x")
"""`struct flock` of 64-bit Linux: type, whence (0: from the start), start, length, pid (0 for these locks)."""


def take(fd: int, byte: int) -> bool:
    """False when somebody else has it."""
    try:
        fcntl.fcntl(fd, fcntl.F_OFD_SETLK, FLOCK.pack(fcntl.F_WRLCK, 0, byte, 1, 0))
    except BlockingIOError:
        return False
    return True


def leave(fd: int, byte: int) -> None:
    fcntl.fcntl(fd, fcntl.F_OFD_SETLK, FLOCK.pack(fcntl.F_UNLCK, 0, byte, 1, 0))


def is_taken(fd: int, byte: int) -> bool:
    """By somebody else than this open file."""
    answer = fcntl.fcntl(fd, fcntl.F_OFD_GETLK, FLOCK.pack(fcntl.F_WRLCK, 0, byte, 1, 0))
    return FLOCK.unpack(answer)[0] != fcntl.F_UNLCK
