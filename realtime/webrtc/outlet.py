"""One call, as far as the loudspeaker of its session needs it: where sound comes out, and whom to tell what is played."""

import asyncio
import contextlib
from collections.abc import Callable

from realtime.errors import SERVER, ErrorBody
from realtime.media.call_codecs import Voice
from realtime.media.opus_frames import FRAME_MS
from realtime.openai_realtime import server_events
from realtime.openai_realtime.server_events import ServerEvent
from realtime.webrtc.playout import Playout

MAX_NOTICES = 64
"""Overflow policy: refuse; a client that takes none of so many has other troubles."""
SLOT_S = FRAME_MS / 1000
ASK_SLOTS = 5
"""100 ms. A client that is spoken to and has given no sign of life for so long is asked for one, and again after as many. When it
comes back, only this is played again, and what was sent while a question goes there and back."""


class Outlet:
    """`voice` says how an answer that begins now is encoded, `silent_s` for how long the client has given no sign of life; `ask`
    makes one that is there give one. `notices` are for the client. Silent while it has no `playout`: its loudspeaker is not
    plugged in yet, or elsewhere now."""

    def __init__(self, voice: Callable[[], Voice], silent_s: Callable[[], float], ask: Callable[[], None]) -> None:
        self.voice = voice
        self.notices: asyncio.Queue[ServerEvent] = asyncio.Queue(MAX_NOTICES)
        self.playout: Playout | None = None
        self.muted: Callable[[], bool] = lambda: False
        """Whether nothing may be heard now, as the session may be another node's by now. What was not played waits."""
        self.unheard_slots = 0
        """Since the last sign of life. What was sent in them may have reached nobody."""
        self._silent_s = silent_s
        self._ask = ask
        self._was_silent_s = 0.0

    def next(self) -> bytes | None:
        """The packet of this slot; None: silence."""
        silent_s = self._silent_s()
        lives = silent_s < SLOT_S or silent_s < self._was_silent_s
        self._was_silent_s = silent_s
        self.unheard_slots = 1 if lives else self.unheard_slots + 1
        packet = None if self.playout is None or self.muted() else self.playout.next()
        if packet is not None and self.unheard_slots % ASK_SLOTS == 0:
            self._ask()
        return packet

    def started(self, response_id: str) -> None:
        self._tell(server_events.PlaybackStarted(response_id=response_id))

    def stopped(self, response_id: str) -> None:
        self._tell(server_events.PlaybackStopped(response_id=response_id))

    def lost(self, message: str) -> None:
        self._tell(server_events.Error(error=ErrorBody(message=message, type=SERVER, code="sound_lost")))

    def _tell(self, notice: ServerEvent) -> None:
        with contextlib.suppress(asyncio.QueueFull):
            self.notices.put_nowait(notice)
