"""Locks on single bytes of an open file, which say who is alive: they end with the process that holds them.

They belong to the open file (`F_OFD_SETLK`), not to the process: one process can hold and see several, and closing some other
descriptor of the same file ends none of them.
"""

import struct
from fcntl import F_OFD_GETLK, F_OFD_SETLK, F_UNLCK, F_WRLCK, fcntl

FLOCK = struct.Struct("hhqqi4x")
"""`struct flock` of 64-bit Linux: type, whence (0: from the start), start, length, pid (0 for these locks)."""
UNLOCKED = struct.pack("h", F_UNLCK)


class ByteLock:
    def __init__(self, byte: int) -> None:
        self._lock = FLOCK.pack(F_WRLCK, 0, byte, 1, 0)
        self._unlock = FLOCK.pack(F_UNLCK, 0, byte, 1, 0)

    def take(self, fd: int) -> bool:
        """False when somebody else has it."""
        try:
            fcntl(fd, F_OFD_SETLK, self._lock)
        except BlockingIOError:
            return False
        return True

    def leave(self, fd: int) -> None:
        fcntl(fd, F_OFD_SETLK, self._unlock)

    def is_taken(self, fd: int) -> bool:
        """By somebody else than this open file."""
        return not fcntl(fd, F_OFD_GETLK, self._lock).startswith(UNLOCKED)
