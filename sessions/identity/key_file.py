"""The keys of a server whose store is its own memory: a file that only its owner reads, and that `antiphon keys` writes while
the server runs."""

import asyncio
import contextlib
import fcntl
import os
import tempfile
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import TypeAlias

import msgspec

from sessions.store.interface import StoreDown

RETRY_S = 5.0
_OTHERS_WRITE = 0o022

_Shelves: TypeAlias = dict[str, dict[str, msgspec.Raw]]
_decoder = msgspec.json.Decoder(_Shelves)


class KeyFileRefused(StoreDown):
    """It cannot be read or written, or somebody else could have written it. It is a store that is down."""

    def __init__(self, path: Path, why: str) -> None:
        super().__init__(f"{path}: {why}", RETRY_S)


class KeyFile:
    """A KeyStore, in JSON. A file that is not there is one without keys. All raise KeyFileRefused."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @property
    def path(self) -> Path:
        return self._path

    async def put(self, shelf: str, name: str, value: bytes, *, only_new: bool = False) -> bytes:
        return await asyncio.to_thread(self._put, shelf, name, value, only_new)

    async def replace(self, shelf: str, name: str, value: bytes) -> bool:
        return await asyncio.to_thread(self._replace_record, shelf, name, value)

    async def get(self, shelf: str, name: str) -> bytes | None:
        value = (await asyncio.to_thread(self._read)).get(shelf, {}).get(name)
        return None if value is None else bytes(value)

    async def shelf(self, shelf: str) -> Mapping[str, bytes]:
        return {name: bytes(value) for name, value in (await asyncio.to_thread(self._read)).get(shelf, {}).items()}

    async def remove(self, shelf: str, name: str) -> bool:
        return await asyncio.to_thread(self._remove, shelf, name)

    def _put(self, shelf: str, name: str, value: bytes, only_new: bool) -> bytes:
        with self._changing() as shelves:
            records = shelves.setdefault(shelf, {})
            if not only_new or name not in records:
                records[name] = msgspec.Raw(value)
            return bytes(records[name])

    def _replace_record(self, shelf: str, name: str, value: bytes) -> bool:
        with self._changing() as shelves:
            records = shelves.get(shelf, {})
            if name not in records:
                return False
            records[name] = msgspec.Raw(value)
            return True

    def _remove(self, shelf: str, name: str) -> bool:
        with self._changing() as shelves:
            return shelves.get(shelf, {}).pop(name, None) is not None

    @contextlib.contextmanager
    def _changing(self) -> Generator[_Shelves]:
        """What the block makes of the shelves is in the file afterwards; two writers wait for each other."""
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with self._path.with_name(f"{self._path.name}.lock").open("w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                shelves = self._read()
                yield shelves
                self._replace(msgspec.json.encode(shelves))
        except OSError as wrong:
            raise KeyFileRefused(self._path, f"cannot be written ({wrong.strerror})") from wrong

    def _replace(self, content: bytes) -> None:
        """Whoever reads meanwhile finds the old file or the new one, whole."""
        descriptor, new = tempfile.mkstemp(dir=self._path.parent, prefix=self._path.name)  # with mode 0600
        try:
            with open(descriptor, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(descriptor)
            os.replace(new, self._path)
        except OSError:
            os.unlink(new)
            raise

    def _read(self) -> _Shelves:
        try:
            with self._path.open("rb") as file:
                self._check(os.fstat(file.fileno()))
                return _decoder.decode(file.read())
        except FileNotFoundError:
            return {}
        except OSError as wrong:
            raise KeyFileRefused(self._path, f"cannot be read ({wrong.strerror})") from wrong
        except msgspec.MsgspecError as wrong:
            raise KeyFileRefused(self._path, f"is no file of keys ({wrong})") from wrong

    def _check(self, facts: os.stat_result) -> None:
        if facts.st_uid not in (0, os.geteuid()) or facts.st_mode & _OTHERS_WRITE:
            raise KeyFileRefused(
                self._path, "others may write to it, and so make keys: expected mode 0600, and the owner who serves"
            )
