"""stdin is the worker's lifeline: its end means that the launcher has died, and with it every reason to live."""

import os
import signal
import threading
from typing import BinaryIO


def lead_own_group() -> None:
    """Make this process the leader of its group, so that ending the group ends the models' own processes and nobody else."""
    if os.getpgrp() != os.getpid():
        os.setpgid(0, 0)


def watch(stdin: BinaryIO) -> None:
    """At the end of `stdin` the process group is killed. A thread of its own sees it even when the event loop is stuck."""
    threading.Thread(target=_wait_and_kill, args=(stdin,), name="lifeline", daemon=True).start()


def _wait_and_kill(stdin: BinaryIO) -> None:
    while stdin.read(1):
        pass
    os.killpg(0, signal.SIGKILL)
