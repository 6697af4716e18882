"""Received packets in the order in which they were sent."""

from realtime.webrtc.packets import AudioPacket

WAIT_PACKETS = 2
"""So many later packets may come before a missing one counts as lost: it would be 40 ms late."""
MAX_LOST = 10
"""More packets than these in a row are a pause or another stream: nobody conceals 200 ms."""
RESTART_GAP = 200
"""A jump of the sequence numbers by more is a new stream."""


class PacketOrder:
    """`add` gives payloads in order; an empty one stands for a packet that was lost."""

    def __init__(self) -> None:
        self._next: int | None = None
        self._early: dict[int, bytes] = {}

    def add(self, packet: AudioPacket) -> list[bytes]:
        """Duplicates, and packets that come after they were given up, are dropped."""
        if self._next is None or self._is_restart(packet.sequence):
            self._next, self._early = packet.sequence, {}
        if self._ahead(packet.sequence) < 0:
            return []
        self._early[packet.sequence] = packet.payload
        return self._in_order()

    def _in_order(self) -> list[bytes]:
        given = self._run()
        while len(self._early) > WAIT_PACKETS:
            given += self._give_up()
            given += self._run()
        return given

    def _run(self) -> list[bytes]:
        run: list[bytes] = []
        while self._next is not None and self._next in self._early:
            run.append(self._early.pop(self._next))
            self._next = (self._next + 1) & 0xFFFF
        return run

    def _give_up(self) -> list[bytes]:
        """The hole before the first early packet."""
        lost = min(self._ahead(sequence) for sequence in self._early)
        self._next = ((self._next or 0) + lost) & 0xFFFF
        return [b""] * min(lost, MAX_LOST)

    def _ahead(self, sequence: int) -> int:
        """How far after the next one, from -32,768 on (RFC 3550: the numbers wrap)."""
        return ((sequence - (self._next or 0) + 0x8000) & 0xFFFF) - 0x8000

    def _is_restart(self, sequence: int) -> bool:
        return abs(self._ahead(sequence)) > RESTART_GAP
