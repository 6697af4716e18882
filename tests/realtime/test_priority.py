"""In processes of their own: the priority of this one is not the tests' to change."""

import subprocess
import sys

SCRIPT = """
import os, threading, sys
from realtime.priority import CLOCK, ask_for_priority
granted = ask_for_priority(CLOCK)
mine = os.sched_getscheduler(0) & ~os.SCHED_RESET_ON_FORK
others = []
thread = threading.Thread(target=lambda: others.append(os.sched_getscheduler(0)))
thread.start(); thread.join()
child = os.fork()
if child == 0:
    os._exit(os.sched_getscheduler(0))
others.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
assert others == [os.SCHED_OTHER, os.SCHED_OTHER], others
assert mine == (os.SCHED_FIFO if granted else os.SCHED_OTHER)
print(granted)
"""


def test_only_the_thread_that_asks_is_raised_and_a_refusal_is_no_failure() -> None:
    outcome = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True)
    assert outcome.stdout.strip() in ("True", "False")
