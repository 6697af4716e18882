"""The clock of what a call sends: one packet in each slot of 20 ms, and none twice as fast to catch up."""

import asyncio
import time
from collections.abc import Awaitable, Callable

from realtime.media.opus_frames import FRAME_MS, OPUS_SILENCE, TICKS_PER_FRAME
from realtime.webrtc.packets import Outgoing
from realtime.webrtc.playout import Playout

SLOT_S = FRAME_MS / 1000


class Pacer:
    """A packet source for a peer. A slot that the loop was too late for is skipped: the sound goes on in the next one, and
    the timestamps show the gap for what it is. `skipped` is told how many. `clock` gives monotonic seconds."""

    def __init__(
        self,
        playout: Playout,
        skipped: Callable[[float], None],
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._playout = playout
        self._skipped = skipped
        self._clock = clock
        self._sleep = sleep
        self._began_at: float | None = None
        self._slot = -1

    async def next(self) -> Outgoing:
        """Returns when the next slot begins."""
        if self._began_at is None:
            self._began_at = self._clock()
        self._slot += 1
        late_s = self._clock() - self._due()
        if late_s >= SLOT_S:
            missed = int(late_s / SLOT_S)
            self._slot += missed
            self._skipped(missed)
        await self._sleep(max(0.0, self._due() - self._clock()))
        return Outgoing(self._playout.next() or OPUS_SILENCE, self._slot * TICKS_PER_FRAME)

    def _due(self) -> float:
        return (self._began_at or 0.0) + self._slot * SLOT_S
