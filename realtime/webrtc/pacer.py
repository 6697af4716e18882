"""The clock of what a call sends: one packet in each slot of 20 ms, and none twice as fast to catch up."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Protocol

from realtime.media.call_codecs import CallCodec
from realtime.media.opus_frames import FRAME_MS
from realtime.webrtc.codec_facts import FACTS
from realtime.webrtc.packets import Outgoing

SLOT_S = FRAME_MS / 1000
PAUSE_SLOTS = 20
"""Where silence need not be sent, one packet in 400 ms says that the call goes on (RFC 7587, 3.1.3)."""


class Slots(Protocol):
    def next(self) -> bytes | None:
        """What is played in this slot of 20 ms; None: nothing."""
        ...


class Pacer:
    """A packet source for a peer. A slot that the loop was too late for is skipped: the sound goes on in the next one, and
    the timestamps show the gap for what it is. `skipped` is told how many. `clock` gives monotonic seconds.

    `sparing`: of the silence between answers only a packet here and there is sent.
    """

    def __init__(
        self,
        playout: Slots,
        skipped: Callable[[float], None],
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        *,
        codec: CallCodec = "opus",
        sparing: bool = False,
    ) -> None:
        self._playout = playout
        self._skipped = skipped
        self._clock = clock
        self._sleep = sleep
        self._facts = FACTS[codec]
        self._ticks_per_slot = self._facts.clock_hz * FRAME_MS // 1000
        self._sparing = sparing
        self._began_at: float | None = None
        self._slot = -1
        self._silent_slots = 0

    async def next(self) -> Outgoing:
        """Returns when the next slot begins, or the next in which there is something to send."""
        while True:
            await self._next_slot()
            sound = self._playout.next()
            self._silent_slots = self._silent_slots + 1 if sound is None else 0
            payload = sound or self._silence()
            if payload is not None:
                return Outgoing(payload, self._slot * self._ticks_per_slot)

    async def _next_slot(self) -> None:
        if self._began_at is None:
            self._began_at = self._clock()
        self._slot += 1
        late_s = self._clock() - self._due()
        if late_s >= SLOT_S:
            missed = int(late_s / SLOT_S)
            self._slot += missed
            self._skipped(missed)
        await self._sleep(max(0.0, self._due() - self._clock()))

    def _silence(self) -> bytes | None:
        """First the end of the sound, then the word that nothing comes; None: nothing."""
        if not self._sparing or self._silent_slots == 1:
            return self._facts.silence
        return self._facts.pause if self._silent_slots % PAUSE_SLOTS == 2 else None

    def _due(self) -> float:
        return (self._began_at or 0.0) + self._slot * SLOT_S
