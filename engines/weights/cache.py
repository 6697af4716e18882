"""Where fetched weights lie, and whether they are complete."""

import hashlib
import os
from pathlib import Path

import msgspec

from engines.weights.manifest import Weights, entry

STAMP_NAME = "complete.json"


class WeightsError(Exception):
    """One sentence that says what is wrong with the weights and what to do."""


class WeightsMissing(WeightsError):
    def __init__(self, name: str, folder: Path, fault: str) -> None:
        super().__init__(
            f"the weights {name!r} are {fault} in {folder}: "
            f"run `deploy/serve`, or `.venv/bin/python -m engines.weights fetch {name}`"
        )
        self.name = name


class FoundFile(msgspec.Struct, frozen=True):
    size_bytes: int
    sha256: str


class Stamp(msgspec.Struct, frozen=True):
    """Written last into a finished folder: which manifest entry it was made from, and every file as it then was."""

    manifest: str
    files: dict[str, FoundFile]


_stamps = msgspec.json.Decoder(Stamp)


def cache_folder() -> Path:
    """$ANTIPHON_CACHE, or ~/.cache/antiphon."""
    return Path(os.environ.get("ANTIPHON_CACHE") or Path.home() / ".cache" / "antiphon")


def folder(name: str) -> Path:
    return cache_folder() / "weights" / name


def directory(name: str) -> Path:
    """The folder of the finished weights `name`; a look at names and sizes, not at checksums.

    Raises WeightsMissing when they were never fetched, are damaged, or belong to another manifest; UnknownWeights.
    """
    fault = find_fault(entry(name))
    if fault:
        raise WeightsMissing(name, folder(name), fault)
    return folder(name)


def find_fault(weights: Weights, *, checksums: bool = False) -> str:
    """What they are instead of well: `missing`, for instance; empty when all is well. `checksums` reads every byte."""
    here = folder(weights.name)
    try:
        stamp = _stamps.decode((here / STAMP_NAME).read_bytes())
    except FileNotFoundError:
        return "missing"
    except msgspec.MsgspecError:
        return f"damaged ({STAMP_NAME})"
    if stamp.manifest != digest(weights):
        return "of another version"
    for name, expected in stamp.files.items():
        if not _is_as_stamped(here / name, expected, checksums=checksums):
            return f"damaged ({name})"
    return ""


def write_stamp(weights: Weights, staged: Path) -> None:
    """Mark the folder `staged` as finished. Raises WeightsError when a file of the manifest is not there."""
    absent = [name for name in weights.results() if not (staged / name).is_file()]
    if absent:
        raise WeightsError(f"the weights {weights.name!r} came out without {', '.join(absent)}: please report this")
    files = {
        path.relative_to(staged).as_posix(): FoundFile(path.stat().st_size, sha256_of(path))
        for path in sorted(staged.rglob("*"))
        if path.is_file()
    }
    (staged / STAMP_NAME).write_bytes(msgspec.json.format(msgspec.json.encode(Stamp(digest(weights), files))))


def digest(weights: Weights) -> str:
    """Changes whenever the manifest's entry does."""
    return hashlib.sha256(msgspec.json.encode(weights)).hexdigest()


def sha256_of(path: Path) -> str:
    with path.open("rb") as source:
        return hashlib.file_digest(source, "sha256").hexdigest()


def _is_as_stamped(path: Path, expected: FoundFile, *, checksums: bool) -> bool:
    if not path.is_file() or path.stat().st_size != expected.size_bytes:
        return False
    return not checksums or sha256_of(path) == expected.sha256
