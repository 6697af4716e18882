"""The secret that the hosts of a deployment share. It lies in a file of its own, so that the deployment can be shown around."""

import stat
from collections.abc import Mapping
from pathlib import Path

from engines.configuration import ConfigurationError, WrongValue, shown
from engines.launching.worker_settings import WorkerSettings
from engines.named_path import named_path
from engines.network.addresses import TcpAddress, address

SHORTEST_SECRET_BYTES = 16


def secret_file(file: Path, value: object, workers: Mapping[str, WorkerSettings]) -> str:
    """The absolute path of a deployment's `secret_file`, which counts from the deployment's own; empty where none is needed or
    named. Raises ConfigurationError."""
    if value in (None, ""):
        _refuse_missing(file, workers)
        return ""
    if not isinstance(value, str):
        raise WrongValue(file, "secret_file", "the path of a file", shown(value))
    path = str(named_path(file, "secret_file", value))
    try:
        read_secret(path)
    except ValueError as unfit:
        raise ConfigurationError(file, str(unfit)) from unfit
    return path


def read_secret(path: str) -> bytes:
    """Without the white space around it; empty for no path. Raises ValueError with what to do."""
    if not path:
        return b""
    try:
        mode = Path(path).stat().st_mode
        secret = Path(path).read_bytes().strip()
    except OSError as unreadable:
        raise ValueError(f"secret_file: expected a file that can be read, got {path}: {unreadable.strerror}") from unreadable
    if stat.S_IMODE(mode) & 0o077:
        got = stat.filemode(mode)
        raise ValueError(f"secret_file: expected a file that only its owner can read (chmod 600 {path}), got {got}")
    if len(secret) < SHORTEST_SECRET_BYTES:
        raise ValueError(
            f"secret_file: expected at least {SHORTEST_SECRET_BYTES} bytes in {path} (openssl rand -hex 32), got {len(secret)}"
        )
    return secret


def _refuse_missing(file: Path, workers: Mapping[str, WorkerSettings]) -> None:
    for worker in workers.values():
        place = address(worker.address) if worker.address else None
        if isinstance(place, TcpAddress) and not place.is_loopback:
            raise WrongValue(file, "secret_file", f"a file with the secret that is shared with the worker at {place}", "none")
