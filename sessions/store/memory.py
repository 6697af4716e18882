"""The store of one process: without set-up, and gone with it."""

from collections.abc import Callable

from sessions.store.interface import CallWatch
from sessions.store.memory_admission import MemoryAdmission
from sessions.store.memory_jobs import MemoryJobs
from sessions.store.memory_sessions import MemorySessions


class MemoryStore(MemoryAdmission, MemorySessions, MemoryJobs):
    """A Store. `now_us` is its clock: µs that never go back."""

    def __init__(self, now_us: Callable[[], int], settle_s: float = 0.0) -> None:
        incarnation = now_us()
        MemoryAdmission.__init__(self, now_us, incarnation, settle_s)
        MemorySessions.__init__(self, now_us, incarnation)
        MemoryJobs.__init__(self, now_us)

    async def incarnation(self) -> int:
        return self._life

    def measured_by(self, watch: CallWatch) -> None:
        """There is no server."""

    async def close(self) -> None:
        """Nothing is open."""
