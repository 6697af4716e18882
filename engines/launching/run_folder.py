"""The folder of one run of the gateway: its workers' sockets and temporary files lie in there, and go with it."""

import fcntl
import os
import shutil
import stat
import tempfile
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

PREFIX = "antiphon-"
OWNER = "owner"
LONGEST_PLACE_BYTES = 41
"""A socket's path has room for 107 bytes: for this, 18 of our own folder's name, 9 of a worker's and 37 of a socket of vLLM's."""


def place_for_sockets() -> str:
    """Where temporary files go, unless a socket in there would get too long a path."""
    place = tempfile.gettempdir()
    return place if len(os.fsencode(place)) <= LONGEST_PLACE_BYTES else "/tmp"


@contextmanager
def run_folder(place: str) -> Generator[str]:
    """A new folder in `place`, mode 0700. Folders there of this user's runs that were killed are removed first."""
    _sweep(Path(place))
    with tempfile.TemporaryDirectory(prefix=PREFIX, dir=place, ignore_cleanup_errors=True) as folder, _owned(Path(folder)):
        yield folder


@contextmanager
def _owned(folder: Path) -> Generator[None]:
    """Holds a lock that ends with this process, however it ends, and that runs in other containers see as well.

    The file gets its name when it is locked, so nobody finds it free before.
    """
    unnamed = folder / f"{OWNER}.new"
    with unnamed.open("wb") as owner:
        fcntl.flock(owner, fcntl.LOCK_EX)
        unnamed.rename(folder / OWNER)
        yield


def remove_when_left(folder: Path) -> None:
    """Waits until the run that `folder` belongs to has ended, and does nothing to a folder that is no run's."""
    with suppress(OSError):  # somebody else has removed it
        _remove_if_left(folder / OWNER, wait=True)


def _sweep(place: Path) -> None:
    for owner in place.glob(f"{PREFIX}*/{OWNER}"):
        with suppress(OSError):  # locked: its run lives; or it has just gone
            _remove_if_left(owner, wait=False)


def _remove_if_left(owner: Path, *, wait: bool) -> None:
    folder = owner.parent.lstat()
    if folder.st_uid != os.getuid() or not stat.S_ISDIR(folder.st_mode) or not owner.parent.name.startswith(PREFIX):
        return
    with owner.open("rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        _clear(owner.parent)


def _clear(folder: Path) -> None:
    """The lock's file goes last: as long as it is there, the next start finds what is left."""
    for entry in folder.iterdir():
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        elif entry.name != OWNER:
            entry.unlink()
    shutil.rmtree(folder)
