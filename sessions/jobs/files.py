"""Films on disk: written beside the loop, whole or not at all, under names that cannot be guessed, for this user's eyes alone."""

import asyncio
import os
import re
import secrets
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import BinaryIO

from sessions.jobs.in_thread import to_its_end
from sessions.store.job_records import JobState

SUFFIX = ".mp4"
UNFINISHED = ".part"
IDS_AT_ONCE = 200
_NAME = re.compile(r"(?P<job_id>[A-Za-z0-9_-]{1,64})\.[0-9a-f]{32}\.mp4(\.part)?")
_HOST = re.compile(r"[A-Za-z0-9_-]{1,64}")


class NoRoom(Exception):
    """What is kept here has reached its bound."""


class JobFile:
    """One that is being written: to `path`, as far as there is room for it by `room_bytes` at each write. Of those who share
    `writing` one writes at a time, so that together they take no more than there is."""

    def __init__(self, path: Path, room_bytes: Callable[[], int], writing: threading.Lock) -> None:
        self.size_bytes = 0
        self._path = path
        self._room_bytes = room_bytes
        self._writing = writing
        self._file: BinaryIO | None = None

    def open(self) -> None:
        """Not on the loop. Raises NoRoom and OSError."""
        self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        if self._room_bytes() <= 0:
            raise NoRoom
        self._file = open(self._path, "xb", opener=_private)  # noqa: SIM115 (`finish` and `discard` close it)

    async def write(self, data: bytes | memoryview) -> None:
        """Raises NoRoom and OSError."""
        await to_its_end(lambda: self._append(data))
        self.size_bytes += memoryview(data).nbytes

    async def finish(self) -> str:
        """From now on it is there, under this name. Raises OSError."""
        return await to_its_end(self._finish)

    def discard(self) -> None:
        """Not on the loop. What is finished stays."""
        if self._file is not None:
            self._file.close()
            self._path.unlink(missing_ok=True)

    @property
    def _opened(self) -> BinaryIO:
        assert self._file is not None, "a file is written after it has been opened"
        return self._file

    def _append(self, data: bytes | memoryview) -> None:
        with self._writing:
            if memoryview(data).nbytes > self._room_bytes():
                raise NoRoom
            self._opened.write(data)
            self._opened.flush()

    def _finish(self) -> str:
        self._opened.flush()
        os.fsync(self._opened.fileno())
        self._opened.close()
        finished = self._path.with_name(self._path.name.removesuffix(UNFINISHED))
        self._path.rename(finished)
        return finished.name


class JobFiles:
    """Of all hosts that share `directory`, each in a folder of its own; what this one writes is in that of `host`. The bound is
    of this host: two nodes that write at the same time may exceed it by what they write."""

    def __init__(self, directory: Path, host: str, most_bytes: int) -> None:
        self._directory = directory
        self._own = directory / host
        self._most_bytes = most_bytes
        self._writing = threading.Lock()

    async def is_full(self) -> bool:
        return await asyncio.to_thread(self._used_bytes) >= self._most_bytes

    @asynccontextmanager
    async def writing(self, job_id: str) -> AsyncGenerator[JobFile]:
        """What is not finished in the block is gone after it. Raises NoRoom and OSError."""
        name = f"{job_id}.{secrets.token_hex(16)}{SUFFIX}{UNFINISHED}"
        file = JobFile(self._own / name, self._room_bytes, self._writing)
        try:
            await to_its_end(file.open)
            yield file
        finally:
            await to_its_end(file.discard)

    async def find(self, host: str, name: str) -> Path | None:
        """None: this machine does not see it, or it is gone."""
        if not _HOST.fullmatch(host) or not _NAME.fullmatch(name):
            return None
        path = self._directory / host / name
        return path if await asyncio.to_thread(path.is_file) else None

    async def delete(self, job_id: str) -> None:
        """All that this host has of it. Raises OSError."""
        await asyncio.to_thread(self._delete, frozenset((job_id,)))

    async def sweep(self, states: Callable[[Iterable[str]], Awaitable[Mapping[str, JobState]]]) -> int:
        """Deletes files of jobs that there are no longer, or that have failed. `states` tells of those that there are. Returns
        how many jobs lost theirs. Raises OSError, and what `states` raises."""
        ids = sorted(await asyncio.to_thread(self._ids))
        over: set[str] = set()
        for first in range(0, len(ids), IDS_AT_ONCE):
            some = ids[first : first + IDS_AT_ONCE]
            known = await states(some)
            over.update(job_id for job_id in some if known.get(job_id, JobState.FAILED) is JobState.FAILED)
        if over:
            await asyncio.to_thread(self._delete, over)
        return len(over)

    def _room_bytes(self) -> int:
        return self._most_bytes - self._used_bytes()

    def _used_bytes(self) -> int:
        try:
            with os.scandir(self._own) as entries:
                return sum(_size(entry) for entry in entries)
        except FileNotFoundError:
            return 0

    def _ids(self) -> set[str]:
        if not self._own.is_dir():
            return set()
        return {named["job_id"] for name in os.listdir(self._own) if (named := _NAME.fullmatch(name)) is not None}

    def _delete(self, job_ids: Iterable[str]) -> None:
        if not self._own.is_dir():
            return
        for name in os.listdir(self._own):
            named = _NAME.fullmatch(name)
            if named is not None and named["job_id"] in job_ids:
                (self._own / name).unlink(missing_ok=True)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _size(entry: os.DirEntry[str]) -> int:
    try:
        return entry.stat(follow_symlinks=False).st_size
    except FileNotFoundError:  # deleted meanwhile
        return 0
