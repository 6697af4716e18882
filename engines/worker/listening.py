"""The worker's Unix socket."""

import os
import socket
import stat
from pathlib import Path

from engines.worker.spec import WorkerSpec

LONGEST_PATH_BYTES = 107
"""sun_path of a Unix socket on Linux, without the closing zero."""

BACKLOG = 64


def listener(spec: WorkerSpec) -> socket.socket:
    """The launcher's socket where it handed one over, else one bound here. Raises OSError and ValueError."""
    if spec.listen_fd is not None:
        inherited = socket.socket(fileno=spec.listen_fd)
        inherited.set_inheritable(False)  # a model's own processes must not keep it open
        return inherited
    path = Path(spec.socket)
    if len(os.fsencode(path)) > LONGEST_PATH_BYTES:
        raise ValueError(f"socket: expected a path of at most {LONGEST_PATH_BYTES} bytes, got {path}")
    _private_folder(path.parent)
    path.unlink(missing_ok=True)
    bound = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    bound.bind(str(path))
    bound.listen(BACKLOG)
    return bound


def _private_folder(folder: Path) -> None:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    status = folder.stat()
    if status.st_uid != os.getuid() or stat.S_IMODE(status.st_mode) & 0o077:
        raise ValueError(f"socket: expected its folder {folder} to be ours with mode 0700, got {stat.filemode(status.st_mode)}")
