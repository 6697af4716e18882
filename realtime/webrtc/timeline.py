"""The course of a stream by its time stamps: what lies between two packets is a loss or a pause of exactly that length; and when
nothing comes, the clock goes on. Pure."""

from realtime.media.opus_frames import RATE_HZ
from realtime.webrtc.codec_facts import CodecFacts
from realtime.webrtc.hearing import Hearing
from realtime.webrtc.lateness import signed
from realtime.webrtc.packets import AudioPacket, Lost, Silent, Sound

STALL_S = 0.4
"""When nothing comes and nobody said why, time stands still for so long: a stall of the network is not the end of a turn."""
STEP_S = 0.06
"""Silence is filled in pieces of this length, and after LONG_S, when no turn waits for its end any more, of LONG_STEP_S."""
LONG_S, LONG_STEP_S = 2.0, 0.5
MOST_FILLED_AHEAD_S = 10.0
"""What is filled cannot be more than the time that went by, and this: time stamps are the client's."""
FRAME_S = 0.02


class Timeline:
    def __init__(self, facts: CodecFacts, hearing: Hearing) -> None:
        self._facts = facts
        self._hearing = hearing
        self._packet_ticks = int(FRAME_S * facts.clock_hz)
        self._end: int | None = None
        """Time stamp up to which the stream was given."""
        self._missing = 0
        """Packets that were lost since."""
        self._is_anew = False
        """The time stamps to come have nothing to do with that."""
        self._filled = 0
        """Ticks of silence that the clock has put after that."""
        self._explained = False
        """The sender has said that it falls silent."""
        self._heard_s = 0.0
        """When the last sound came."""
        self._began_s: float | None = None
        self._filled_ever = 0

    def begin_anew(self) -> None:
        """The next sound follows at once, whatever its time stamp. Until it comes the clock goes on."""
        self._is_anew = True

    def give(self, packet: AudioPacket, missing: int, now_s: float) -> list[Sound]:
        """The packet, and before it what lies between it and the one before, `missing` packets of which were lost."""
        if self._began_s is None:
            self._began_s = now_s
        self._missing += missing
        ticks = self._facts.ticks(packet.payload)
        if packet.comfort_noise:
            self._explained = True
        if not ticks:
            return []
        given = [] if self._end is None or self._is_anew else self._between(packet, self._end, now_s)
        self._end, self._is_anew, self._heard_s = packet.timestamp + ticks & 0xFFFF_FFFF, False, now_s
        self._packet_ticks = ticks
        self._missing = self._filled = 0
        self._explained = self._facts.is_pause(packet.payload)
        return [*given, packet.payload]

    def due_s(self, delay_s: float) -> float | None:
        """When `fill` has something to give if no packet comes before; None: never. `delay_s`: how late packets may come."""
        if self._end is None:
            return None
        if not self._explained and not self._filled:
            return self._heard_s + STALL_S
        filled_s = self._filled / self._facts.clock_hz
        return self._heard_s + self._lag_s(delay_s) + filled_s + (STEP_S if filled_s < LONG_S else LONG_STEP_S)

    def fill(self, now_s: float, delay_s: float) -> list[Sound]:
        """Silence up to now, when it is due."""
        due_s = self.due_s(delay_s)
        if due_s is None or now_s < due_s:
            return []
        passed_ms = int((now_s - self._heard_s - self._lag_s(delay_s)) * 1000)  # whole ones are whole samples
        passed = passed_ms * self._facts.clock_hz // 1000
        silent = self._allowed(passed - self._filled, now_s)
        self._filled = passed
        return self._silent(silent)

    def _lag_s(self, delay_s: float) -> float:
        """So late a packet may come and still find its place empty: it is sent when its sound is over, and may be late."""
        return self._packet_ticks / self._facts.clock_hz + delay_s

    def _between(self, packet: AudioPacket, end: int, now_s: float) -> list[Sound]:
        gap = self._allowed(signed(packet.timestamp - end) - self._filled, now_s)
        lost = min(gap, self._missing * self._packet_ticks)
        if self._explained or lost == gap:
            return [*self._silent(gap - lost), *self._lost(lost, packet.payload)]
        return [*self._lost(lost, b""), *self._silent(gap - lost)]

    def _allowed(self, ticks: int, now_s: float) -> int:
        began_s = now_s if self._began_s is None else self._began_s
        most = int((now_s - began_s + MOST_FILLED_AHEAD_S) * self._facts.clock_hz) - self._filled_ever
        allowed = max(min(ticks, most), 0)
        self._filled_ever += allowed
        return allowed

    def _silent(self, ticks: int) -> list[Sound]:
        self._hearing.silent_s += ticks / self._facts.clock_hz
        return [Silent(self._samples(ticks))] if ticks else []

    def _lost(self, ticks: int, following: bytes) -> list[Sound]:
        """Counted as what the decoder will make of it."""
        lost_s = ticks / self._facts.clock_hz
        copied = self._facts.ticks(following) if self._facts.has_copy(following) else 0
        recovered_s = min(ticks, copied) / self._facts.clock_hz
        concealed_s = min(lost_s - recovered_s, self._facts.most_concealed_s)
        self._hearing.recovered_s += recovered_s
        self._hearing.concealed_s += concealed_s
        self._hearing.silent_s += lost_s - recovered_s - concealed_s
        return [Lost(self._samples(ticks))] if ticks else []

    def _samples(self, ticks: int) -> int:
        return ticks * RATE_HZ // self._facts.clock_hz
