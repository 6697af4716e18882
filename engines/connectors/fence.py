"""A full memory fence, for what two processes write into shared memory without a lock between them."""

from threading import Lock


def fence() -> None:
    """What this thread wrote or read before lies before everything that it reads or writes after.

    Nothing in Python promises that, so it rests on what a lock compiles to. x86: taking one is a locked instruction, which is a
    fence by itself. ARMv8: nothing before a release (the first leaving) moves behind it, nothing after an acquire (the second
    taking) moves before it, and an acquire never overtakes a release that comes earlier in the program. Hence twice: inside of
    one taking and leaving, both sides could still swap places. The lock is new each time, so that nobody ever waits for it, and
    nothing that interrupts this thread finds it taken.
    """
    lock = Lock()
    lock.acquire()
    lock.release()
    lock.acquire()
    lock.release()
