"""The memory of one producing process in which its payloads lie, and how other processes open it.

    page 0         MAGIC, name, number of pages: what this memory is
    entries        one of ENTRY_BYTES for each page: engines/connectors/entries.py
    pages          PAGE_BYTES each; a record takes as many in a row as it needs

It has no name in any file system and ends with the last process that has it open or mapped. It can neither shrink nor grow, so
that no mapping ever points past its end.
"""

import contextlib
import errno
import fcntl
import mmap
import os
import secrets
import struct

import numpy as np

from engines.connectors.byte_locks import ByteLock

PAGE_BYTES = 4096
ENTRY_BYTES = 128
MAGIC = b"antiphon arena 1"
HEADER = struct.Struct("<16s32sQ")
LANES = 64
"""How many processes can read it at a time."""
OWNER_LOCK = ByteLock(0)
"""Its producer holds it while it lives."""
LANE_LOCKS = [ByteLock(1 + lane) for lane in range(LANES)]
"""Each reader holds one while it lives, and marks in that lane."""


class ArenaGone(Exception):
    """The arena cannot be opened any more: its process ended, or was another one."""


class Arena:
    """One mapping. It ends when nobody holds it or a view into it."""

    def __init__(self, name: str, fd: int, pages: int) -> None:
        """Takes `fd` over."""
        self.name = name
        self.fd = fd
        self.pages = pages
        self.memory = mmap.mmap(fd, _size(pages))
        self.first = PAGE_BYTES + _entries_bytes(pages)
        """Where page 0 of the records begins."""
        with contextlib.suppress(OSError):  # kernels without huge pages for shared memory
            self.memory.madvise(mmap.MADV_HUGEPAGE)

    def close(self) -> None:
        """Idempotent. The mapping keeps the open file, and with it the locks, until the last view is gone."""
        fd, self.fd = self.fd, -1
        if fd >= 0:
            os.close(fd)

    def is_alive(self) -> bool:
        """Whether its producer is. Not to be asked by the producer."""
        return OWNER_LOCK.is_taken(self.fd)


def create(capacity_bytes: int) -> Arena:
    """Every page is touched at once: the first touch costs 6 µs a page, which no payload shall pay for. Raises OSError."""
    name, pages = secrets.token_hex(16), capacity_bytes // PAGE_BYTES
    fd = os.memfd_create(_label(name), os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.ftruncate(fd, _size(pages))
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL)
    OWNER_LOCK.take(fd)
    arena = Arena(name, fd, pages)
    np.frombuffer(arena.memory, np.uint8)[::PAGE_BYTES] = 0
    HEADER.pack_into(arena.memory, 0, MAGIC, name.encode(), pages)
    return arena


def open_arena(name: str, pid: int, fd: int) -> Arena:
    """Raises ArenaGone."""
    path = f"/proc/{pid}/fd/{fd}"
    try:
        if os.readlink(path) != f"/memfd:{_label(name)} (deleted)":
            raise ArenaGone(f"process {pid} is not the one that had arena {name}")
        opened = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except OSError as gone:
        raise ArenaGone(f"arena {name} of process {pid} cannot be opened: {gone.strerror}{_advice(gone)}") from gone
    header = os.pread(opened, HEADER.size, 0)
    magic, named, pages = HEADER.unpack(header) if len(header) == HEADER.size else (b"", b"", 0)
    sealed = fcntl.fcntl(opened, fcntl.F_GET_SEALS) & fcntl.F_SEAL_SHRINK
    if (magic, named) != (MAGIC, name.encode()) or not sealed or os.fstat(opened).st_size != _size(pages):
        os.close(opened)
        raise ArenaGone(f"what process {pid} has open as {fd} is not arena {name}")
    try:
        return Arena(name, opened, pages)
    except OSError as refused:
        os.close(opened)
        raise ArenaGone(f"arena {name} of process {pid} cannot be mapped: {refused.strerror}") from refused


def _advice(error: OSError) -> str:
    return "; both processes must run as the same user" if error.errno in (errno.EACCES, errno.EPERM) else ""


def _label(name: str) -> str:
    return f"antiphon-{name}"


def _entries_bytes(pages: int) -> int:
    return -(-pages * ENTRY_BYTES // PAGE_BYTES) * PAGE_BYTES


def _size(pages: int) -> int:
    return PAGE_BYTES + _entries_bytes(pages) + pages * PAGE_BYTES
