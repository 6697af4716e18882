"""stdin is the worker's lifeline: its end means that the launcher has died, and with it every reason to live."""

import os
import threading
from pathlib import Path
from typing import BinaryIO

from engines.launching.process_group import kill_all_but_trackers
from engines.launching.run_folder import remove_when_left

CLEARING_LIMIT_S = 1.0
"""For the launcher's folder: a dead launcher's lock on it is free at once."""


def lead_own_group() -> None:
    """Make this process the leader of its group, so that ending the group ends the models' own processes and nobody else."""
    if os.getpgrp() != os.getpid():
        os.setpgid(0, 0)


def watch(stdin: BinaryIO, socket: Path) -> None:
    """At the end of `stdin` the process group is killed, after the launcher's folder, where `socket` lies, has been removed. A
    thread of its own sees it even when the event loop is stuck."""
    threading.Thread(target=_wait_and_kill, args=(stdin, socket), name="lifeline", daemon=True).start()


def _wait_and_kill(stdin: BinaryIO, socket: Path) -> None:
    while stdin.read(1):
        pass
    clearing = threading.Thread(target=remove_when_left, args=(socket.parent,), name="clearing", daemon=True)
    clearing.start()
    clearing.join(CLEARING_LIMIT_S)
    kill_all_but_trackers(os.getpgrp())
