"""What went wrong of late, for `health`."""

import logging
import time
from collections.abc import Callable

REMEMBERED_S = 60.0

log = logging.getLogger(__name__)


class Faults:
    def __init__(self, who: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._who = who
        self._clock = clock
        self._count = 0
        self.last = ""
        self._last_at = 0.0

    def note(self, fault: str) -> None:
        """Logged unless there has been one of late: who knocks all day fills no disk."""
        if not self.sentence():
            self._count = 0
            log.warning("%s: %s", self._who, fault)
        self._count += 1
        self.last, self._last_at = fault, self._clock()

    def sentence(self) -> str:
        """Empty when nothing went wrong for REMEMBERED_S."""
        if not self.last or self._clock() - self._last_at > REMEMBERED_S:
            return ""
        return self.last if self._count == 1 else f"{self.last} ({self._count} faults of late)"
