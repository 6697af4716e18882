"""Who runs first when the cores are busy: the audio clock, then the codecs of calls, then everything else."""

import os

CODEC = 1
CLOCK = 2


def ask_for_priority(level: int) -> bool:
    """Let the calling thread run before all ordinary ones (SCHED_FIFO). False where the system does not allow it: it does so to
    root and to CAP_SYS_NICE. Neither child processes nor further threads inherit it."""
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(level))
    except PermissionError:
        return False
    return True
