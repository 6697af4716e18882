"""Received packets as one unbroken stream of sound. Pure: it is told the time.

Whoever listens here detects and recognises speech and has no loudspeaker to feed, so packets in order are given at once. Only a
hole waits, from the arrival of the packet after it for as long as packets come late (20 to 60 ms); then it is given up.
"""

from typing import NamedTuple

import msgspec

from realtime.webrtc.codec_facts import CodecFacts
from realtime.webrtc.hearing import Hearing
from realtime.webrtc.lateness import Lateness
from realtime.webrtc.packets import AudioPacket, Sound
from realtime.webrtc.timeline import Timeline

MAX_STEP = 500
"""A jump of the sequence numbers by more, ten seconds, is a new stream."""
MAX_HELD = 100
"""Packets behind a hole: two seconds, which can come at once after a stall. Overflow policy: the hole is given up."""
MAX_GIVEN_UP = 500
"""Numbers of lost packets that are remembered, to tell those that come late from doubles."""


class _Held(NamedTuple):
    packet: AudioPacket
    arrived_s: float


class JitterBuffer:
    """`add` and `wake` give what is ready; `wake` is to be called at `due_s`. Times are of any clock that only grows."""

    def __init__(self, facts: CodecFacts) -> None:
        self.hearing = Hearing()
        self._lateness = Lateness(facts.clock_hz)
        self._timeline = Timeline(facts, self.hearing)
        self._stream = 0
        self._next: int | None = None
        self._passed = 0
        """Numbers before the next one that the stream has had."""
        self._held: dict[int, _Held] = {}
        self._given_up: dict[int, None] = {}

    @property
    def due_s(self) -> float | None:
        """None: nothing will be due before another packet has come."""
        if self._held:
            return self._deadline_s()
        return self._timeline.due_s(self._lateness.delay_s)

    def add(self, packet: AudioPacket, now_s: float) -> list[Sound]:
        """What comes after its place was given up is dropped, and so are doubles."""
        self.hearing.received += 1
        given: list[Sound] = []
        if packet.stream != self._stream or abs(self._ahead(packet.sequence)) > MAX_STEP:
            given = self._begin_anew(packet, now_s)
        if self._next is None:
            self._next = packet.sequence
        if self._is_double(packet.sequence):
            self.hearing.duplicates += 1
            return given
        if packet.payload:
            self._lateness.add(packet.timestamp, now_s)
        if self._ahead(packet.sequence) < 0:
            self.hearing.late += 1
            self._given_up.pop(packet.sequence, None)
            return given
        self._held[packet.sequence] = _Held(packet, now_s)
        return given + self._ready(now_s)

    def wake(self, now_s: float) -> list[Sound]:
        given = self._ready(now_s)
        return given if self._held else given + self._timeline.fill(now_s, self._lateness.delay_s)

    def statistics(self) -> Hearing:
        """As of now."""
        self.hearing.jitter_ms = self._lateness.late_s * 1000
        self.hearing.delay_ms = self._lateness.delay_s * 1000
        return msgspec.structs.replace(self.hearing)

    def _ready(self, now_s: float) -> list[Sound]:
        given = self._run(now_s)
        while self._held and (now_s >= self._deadline_s() or len(self._held) > MAX_HELD):
            given += self._give_up_hole(now_s)
        return given

    def _run(self, now_s: float, missing: int = 0) -> list[Sound]:
        """Packets up to the next hole; `missing` were lost before them."""
        run: list[Sound] = []
        while self._next is not None and (held := self._held.pop(self._next, None)) is not None:
            run += self._timeline.give(held.packet, missing, now_s)
            missing = 0
            self._next = (self._next + 1) & 0xFFFF
            self._passed += 1
        return run

    def _give_up_hole(self, now_s: float) -> list[Sound]:
        first = min(self._held, key=self._ahead)
        missing = self._ahead(first)
        for lost in range(missing):
            self._given_up[first - 1 - lost & 0xFFFF] = None
        while len(self._given_up) > MAX_GIVEN_UP:
            del self._given_up[next(iter(self._given_up))]
        self.hearing.lost += missing
        self._next = first
        self._passed += missing
        return self._run(now_s, missing)

    def _begin_anew(self, packet: AudioPacket, now_s: float) -> list[Sound]:
        given: list[Sound] = []
        while self._held:
            given += self._give_up_hole(now_s)
        self._timeline.begin_anew()
        self._lateness.begin_anew()
        self._given_up.clear()
        self._stream, self._next, self._passed = packet.stream, packet.sequence, 0
        return given

    def _is_double(self, sequence: int) -> bool:
        return sequence in self._held or (-self._passed <= self._ahead(sequence) < 0 and sequence not in self._given_up)

    def _deadline_s(self) -> float:
        """Of the first hole: all that is held came after it."""
        return min(held.arrived_s for held in self._held.values()) + self._lateness.delay_s

    def _ahead(self, sequence: int) -> int:
        """How far after the next one, from -32,768 on (RFC 3550: the numbers wrap)."""
        return 0 if self._next is None else ((sequence - self._next + 0x8000) & 0xFFFF) - 0x8000
